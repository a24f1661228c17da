// SPDX-License-Identifier: BSD-2-Clause
/*
 * The library of plugs.c: its calls are those of the program, two for each. Another build of it
 * (-DTSC) can forbid the time stamp counter.
 */
#include "target.h"
#ifdef TSC
#include <sys/prctl.h>

int plug_tsc(void);

int plug_tsc(void)
{
	return prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}
#endif

long plug_outer(long (*back)(long), long n);
long plug_inner(long (*back)(long), long n);

static volatile long sink;

TRACED long plug_inner(long (*back)(long), long n)
{
	sink = n + 1;
	return back(sink) + 1;
}

TRACED long plug_outer(long (*back)(long), long n)
{
	long sum = 5;

	sum += plug_inner(back, n);
	sum += plug_inner(back, n + 1);
	sink = sum;
	return sink;
}
