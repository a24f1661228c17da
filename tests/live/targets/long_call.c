// SPDX-License-Identifier: BSD-2-Clause
/*
 * A call that lasts until standard input has another byte, and calls another function a thousand times a second. Says "working" when that has begun.
 */
#include <poll.h>

#include "target.h"

static unsigned long inner;

TRACED void lc_inner(void)
{
	inner++;
}

TRACED void lc_outer(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	do {
		lc_inner();
		if (inner == 1) {
			printf("working\n");
			fflush(stdout);
		}
	} while (poll(&in, 1, 1) == 0);
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);

	target_ready(&o);
	lc_outer();
	printf("{\"calls\":{\"lc_outer\":1,\"lc_inner\":%lu}}\n", inner);
	return target_done(&o, 1);
}
