// SPDX-License-Identifier: BSD-2-Clause
/* Faults become exceptions: their handler throws, as the run-time libraries of Ada and D do (-fnon-call-exceptions). */
#include <signal.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf) X(hz_load)
#include "outer_leaf.h"

#define CALLS 2000

#ifdef HAZARD_ADA /* what tells such programs from other C++: a part of Ada's run-time library */
extern "C" void __gnat_personality_v0(void)
{
}
#endif

struct fault {};

static void on_fault(int signal)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	sigprocmask(SIG_UNBLOCK, &set, nullptr);
	throw fault();
}

/* Its second instruction loads. */
HZ long hz_load(long *const *p, long n)
{
	HIT(hz_load);
	return n + **p;
}

int main(int argc, char **argv)
{
	struct target_options o;
	long good = 7, *pointers[2] = { &good, nullptr };
	long answer = 0, caught = 0;

	signal(SIGSEGV, on_fault);
	o = hazard_begin(argc, argv);
	for (long n = 0; n < CALLS; n++) {
		answer += hz_outer(n) + hz_load(&pointers[0], n) - n - 7;
		try {
			answer += hz_load(&pointers[1], n);
		} catch (const fault &) {
			caught++;
		}
		try {
			answer += hz_load(reinterpret_cast<long *const *>(16), n);
		} catch (const fault &) {
			caught++;
		}
	}
	return hazard_end(&o, answer + caught, CALLS * (CALLS + 1L) + 2 * CALLS);
}
