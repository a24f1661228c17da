// SPDX-License-Identifier: BSD-2-Clause
/*
 * Faults that the program expects, in traced functions, whose handler knows the instruction by its address, as virtual machines' do: it goes on
 * at another one ("table"), or throws from there ("throw", in C++ with -fnon-call-exceptions).
 */
#include <signal.h>
#include <ucontext.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf) X(hz_probe) X(hz_divide)
#include "outer_leaf.h"

#define CALLS 2000

/* Reads *@p, or returns -1 if that faults. */
__asm__(".text\n.type hz_probe, @function\nhz_probe:\n.cfi_startproc\n\txorl %eax, %eax\nhz_probe_load:\n\tmovq (%rdi), %rax\n\tret\nhz_probe_failed:\n\tmovq $-1, "
	"%rax\n\tret\n.cfi_endproc\n.size hz_probe, .-hz_probe");
__asm__(".text\n.type hz_divide, @function\nhz_divide:\n.cfi_startproc\n\tmovq %rdi, %rax\n\tcqto\nhz_divide_now:\n\tidivq "
	"%rsi\n\tret\nhz_divide_failed:\n\tmovq $-1, %rax\n\tret\n.cfi_endproc\n.size hz_divide, .-hz_divide");
long hz_probe(const long *p);
long hz_divide(long a, long b);
extern const char hz_probe_load[], hz_probe_failed[], hz_divide_now[], hz_divide_failed[];
static volatile long handled;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)info;
	if (*pc == (greg_t)hz_probe_load)
		*pc = (greg_t)hz_probe_failed;
	else if (*pc == (greg_t)hz_divide_now)
		*pc = (greg_t)hz_divide_failed;
	else
		_exit(40 + signal);
	handled++;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	struct target_options o;
	long answer = 0, right = 0, good = 7;

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGFPE, &action, NULL);
	o = hazard_begin(argc, argv);
	for (long n = 0; n < CALLS; n++) {
		__atomic_add_fetch(&hazard_own[N_hz_probe], 2, __ATOMIC_RELAXED);
		__atomic_add_fetch(&hazard_own[N_hz_divide], 2, __ATOMIC_RELAXED);
		__atomic_add_fetch(&hazard_calls[N_hz_probe], 2, __ATOMIC_RELAXED);
		__atomic_add_fetch(&hazard_calls[N_hz_divide], 2, __ATOMIC_RELAXED);
		right += hz_probe(&good) == 7 && hz_divide(6 * n, 3) == 2 * n && hz_divide(n, 0) == -1 && hz_probe((long *)8) == -1;
		answer += hz_outer(n);
	}
	return hazard_end(&o, answer + right + handled, CALLS * (CALLS + 1L) + 3 * CALLS);
}
