// SPDX-License-Identifier: BSD-2-Clause
/* The program looks at its own return addresses: by frame pointers, by __builtin_return_address, by backtrace(). */
#include <execinfo.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_middle) X(hz_look)
#include "hazard.h"

extern char __executable_start, etext;
static volatile long sink;

static int is_own(void *address)
{
	return (char *)address >= &__executable_start && (char *)address < &etext;
}

/* 1 for a return address in the program, 100 for each frame of backtrace() in it */
HZ long hz_look(void)
{
	void *frames[16];
	int n = backtrace(frames, 16);
	long result = is_own(__builtin_return_address(0));

	HIT(hz_look);
	for (int i = 0; i < n; i++)
		result += 100 * is_own(frames[i]);
	return result;
}

HZ long hz_middle(void)
{
	HIT(hz_middle);
	sink = hz_look();
	return sink;
}

HZ long hz_outer(void)
{
	HIT(hz_outer);
	sink = hz_middle();
	return sink;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	long answer = 0;

	for (int i = 0; i < 200; i++)
		answer += hz_outer();
	return hazard_end(&o, answer / 200, answer / 200);
}
