// SPDX-License-Identifier: BSD-2-Clause
/* 20 exec calls in a row, or as many as the argument says, one as the first thing that each does.
 */
#define HAZARD_FUNCTIONS X(hz_exec) X(hz_last)
#include "hazard.h"

HZ long hz_last(long n)
{
	HIT(hz_last);
	return n + 1;
}

HZ void hz_exec(char **argv, long n)
{
	char text[32];

	HIT(hz_exec);
	snprintf(text, sizeof(text), "%ld", n);
	setenv("HAZARD_ROUND", text, 1);
	execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	const char *round = getenv("HAZARD_ROUND");
	struct target_options o = hazard_begin(argc, argv);
	long n = round ? atol(round) : 0;

	if (n < (o.rest ? atol(o.rest) : 20)) {
		hz_exec(argv, n + 1);
		return 2;
	}
	return hazard_end(&o, hz_last(n), n + 1);
}
