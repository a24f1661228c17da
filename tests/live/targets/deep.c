// SPDX-License-Identifier: BSD-2-Clause
/* A recursion of 1,000 frames, ten times a round: the kernel nests 64 return probes. */
#include "target.h"

#define DEPTH 1000
#define DIVES 10

static volatile long sink;
static long calls_descend, calls_bottom;

TRACED long bottom(void)
{
	calls_bottom++;
	return 0;
}

TRACED long descend(int depth)
{
	calls_descend++;
	// The store keeps gcc from turning the recursion into a loop.
	sink = depth > 1 ? descend(depth - 1) : bottom();
	return sink + 1;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	long answer = 0;

	target_ready(&o);
	for (long n = 0; n < o.repeat * DIVES; n++)
		answer += descend(DEPTH);
	printf("{\"answer\":%ld,\"calls\":{\"descend\":%ld,\"bottom\":%ld}}\n", answer,
	       calls_descend, calls_bottom);
	return target_done(&o, answer == o.repeat * DIVES * DEPTH);
}
