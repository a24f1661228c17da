// SPDX-License-Identifier: BSD-2-Clause
/*
 * Faults that the program expects, in traced functions, whose handler knows the instruction by its address, as virtual machines' do: it goes on
 * at another one.
 */
#include <signal.h>
#include <ucontext.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf) X(hz_probe) X(hz_divide)
#include "outer_leaf.h"

#define CALLS 2000

/* Where to go on after a fault, as distances from the entries themselves: the addresses are nowhere in the file. */
struct entry {
	int at, next;
};
extern const struct entry __start_hz_table[], __stop_hz_table[]; /* the linker's */

#define MAY_FAULT(instruction)                                                                                                             \
	"1: " instruction "\n\t.pushsection hz_table, \"a\"\n\t.long 1b - .\n\t.long 2f - .\n\t.popsection\n"

/* Reads *@p, or returns -1 if that faults. */
HZ long hz_probe(const long *p)
{
	long value = -1;

	__asm__ volatile(MAY_FAULT("movq (%1), %0") "2:" : "+r"(value) : "r"(p) : "memory");
	return value;
}

HZ long hz_divide(long a, long b)
{
	long value = -1;

	__asm__ volatile("cqto\n\t" MAY_FAULT("idivq %2") "\tmovq %%rax, %0\n2:" : "+&r"(value), "+a"(a) : "r"(b) : "rdx", "cc");
	return value;
}
static volatile long handled;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)info;
	for (const struct entry *e = __start_hz_table; e < __stop_hz_table; e++)
		if (*pc == (greg_t)((const char *)&e->at + e->at)) {
			*pc = (greg_t)((const char *)&e->next + e->next);
			handled++;
			return;
		}
	_exit(40 + signal);
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
