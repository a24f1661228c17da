// SPDX-License-Identifier: BSD-2-Clause
/* outer_leaf.h for targets whose threads call the pair at the same time: they share no variable. */
#ifndef OUTER_LEAF_THREADS_H
#define OUTER_LEAF_THREADS_H

#include "hazard.h"

HZ long hz_leaf(long n)
{
	HIT(hz_leaf);
	return n + 1;
}

HZ long hz_outer(long n)
{
	long first;

	HIT(hz_outer);
	first = hz_leaf(n);
	return first + hz_leaf(n);
}

#endif
