// SPDX-License-Identifier: BSD-2-Clause
/* A library that is loaded while its process runs. */
#include "target.h"

static volatile long sink;

TRACED long plug_leaf(long x)
{
	sink = x;
	return x - 1;
}

TRACED void plug_work(long n)
{
	sink = plug_leaf(n) + plug_leaf(n + 1);
}
