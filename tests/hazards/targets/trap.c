// SPDX-License-Identifier: BSD-2-Clause
/* The program has breakpoints of its own, and steps through traced functions by the trap flag; it handles SIGTRAP. */
#include <signal.h>
#include <ucontext.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf) X(hz_breaks)
#include "hazard.h"

static volatile long sink, traps, steps;

HZ long hz_leaf(long n)
{
	HIT(hz_leaf);
	return n + 1;
}

HZ long hz_outer(long n)
{
	HIT(hz_outer);
	sink = hz_leaf(n);
	return sink + 1;
}

HZ long hz_breaks(long n)
{
	HIT(hz_breaks);
	__asm__ volatile("int3");
	return n;
}

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	if (info->si_code == SI_KERNEL)
		traps++;
	else
		steps++;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	long answer = 0;

	if (sigaction(SIGTRAP, &action, NULL))
		return 2;
	for (long n = 0; n < 300; n++)
		answer += hz_breaks(n);
	for (long n = 0; n < 300; n++) {
		__asm__ volatile("subq $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; addq $128, %%rsp" ::: "memory", "cc");
		answer += hz_outer(n);
		__asm__ volatile("subq $128, %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; addq $128, %%rsp" ::: "memory", "cc");
	}
	return hazard_end(&o, answer + traps + (steps > 3000), 2 * (299 * 300 / 2) + 600 + 300 + 1);
}
