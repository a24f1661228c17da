// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls spin 300 times, each for a number of ticks of the time-stamp counter that it measures
 * itself, and prints the ticks of each call in order.
 */
#include <stdint.h>
#include <x86intrin.h>

#include "target.h"

#define CALLS 300

static uint64_t measured[CALLS];
static volatile long sink;

TRACED void spin(uint64_t ticks, uint64_t *took)
{
	unsigned int aux;
	uint64_t before, now;

	sink++; // the kernel takes no uprobe on rdtscp
	before = __rdtscp(&aux);
	do {
		now = __rdtscp(&aux);
	} while (now - before < ticks);
	*took = now - before;
	sink = (long)now;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);

	target_ready(&o);
	for (int i = 0; i < CALLS; i++)
		spin(500 + 500 * (uint64_t)(i % 10), &measured[i]);
	printf("{\"calls\":{\"spin\":%d},\"ticks\":[", CALLS);
	for (int i = 0; i < CALLS; i++)
		printf("%s%lu", i ? "," : "", (unsigned long)measured[i]);
	printf("]}\n");
	return target_done(&o, 1);
}
