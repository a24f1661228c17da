// SPDX-License-Identifier: BSD-2-Clause
/* hazard.h, and the pair of traced functions that many targets call: hz_outer calls hz_leaf twice. */
#ifndef OUTER_LEAF_H
#define OUTER_LEAF_H

#include "hazard.h"

static volatile long sink;

HZ long hz_leaf(long n)
{
	HIT(hz_leaf);
	return n + 1;
}

HZ long hz_outer(long n)
{
	HIT(hz_outer);
	sink = hz_leaf(n);
	return sink + hz_leaf(n);
}

#endif
