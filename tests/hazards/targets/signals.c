// SPDX-License-Identifier: BSD-2-Clause
/* Signals at 5 kHz are handled on an alternate stack, by a function that calls others, while traced functions run below. */
#include <signal.h>
#include <sys/time.h>

#define HAZARD_FUNCTIONS X(hz_handler) X(hz_in_handler) X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#define SIGNALS 500

static volatile long handled, in_handler;

HZ long hz_in_handler(long n)
{
	HIT(hz_in_handler);
	return n + 1;
}

HZ void hz_handler(int signal)
{
	HIT(hz_handler);
	in_handler = hz_in_handler(in_handler);
	handled += signal == SIGALRM;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	static char alternate[64 << 10];
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct sigaction action = { .sa_handler = hz_handler, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct itimerval every = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	long wrong = 0;

	if (sigaltstack(&stack, NULL) || sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &every, NULL))
		return 2;
	for (long n = 0; handled < SIGNALS; n++) {
		wrong += hz_outer(n) != 2 * (n + 1);
		for (int i = 0; i < 20000; i++)
			sink = i;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	return hazard_end(&o, wrong + (handled != in_handler), 0);
}
