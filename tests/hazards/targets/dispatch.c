// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls of its own code and libraries are dispatched to a handler (PR_SET_SYSCALL_USER_DISPATCH), as emulators of other systems do.
 * With HAZARD_HIDDEN by a prctl whose name is made at run time.
 */
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

#define CALLS 300000L /* or as many thousands as its argument says */

static volatile char selector;
static long emulated;

static void on_call(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)signal;
	(void)info;
	selector = 0; /* allow */
	emulated++;
	uc->uc_mcontext.gregs[REG_RAX] = 4711;
	/* the handler's return is a system call too, so the program blocks them again itself */
}

#ifdef HAZARD_HIDDEN
typedef int prctl_function(int option, ...);

static prctl_function *hidden(void)
{
	volatile char letters[] = "qsdum"; /* each one too far in the alphabet */
	char name[sizeof(letters)];

	for (size_t i = 0; i < sizeof(letters); i++)
		name[i] = (char)(letters[i] - (i < sizeof(letters) - 1));
	return (prctl_function *)dlsym(RTLD_DEFAULT, name);
}
#endif

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_call, .sa_flags = SA_SIGINFO };
	struct target_options o = hazard_begin(argc, argv);
#ifdef HAZARD_HIDDEN
	prctl_function *set = hidden();
#endif
	const long calls = o.rest ? atol(o.rest) * 1000 : CALLS;
	long answer = 0;

	if (sigaction(SIGSYS, &action, NULL))
		return 2;
#ifdef HAZARD_HIDDEN
	if (set(PR_SET_SYSCALL_USER_DISPATCH, 1L, 0L, 0L, (long)&selector))
		return 2;
#else
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1L, 0L, 0L, (long)&selector))
		return 2;
#endif
	for (long n = 0; n < calls; n++) {
		answer += hz_outer(n);
		if (n % 1000 == 0) {
			selector = 1; /* block */
			answer += getuid() != 4711;
		}
		selector = 1;
	}
	selector = 0;
	return hazard_end(&o, answer, calls * (calls + 1)) + (emulated != calls / 1000);
}
