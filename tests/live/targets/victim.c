// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls step_one() and step_two() about a thousand times a second until a byte on standard
 * input ends it: s SIGSEGV, a abort, k SIGKILL, e exit(7), q exit(0). Before that it prints
 * its counts, including the calls in which it ends.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include "target.h"

static volatile long sink;
static long calls_step, calls_obey;

TRACED long step_one(long n)
{
	sink = n;
	return n + 1;
}

TRACED long step_two(long n)
{
	return step_one(n) + 1;
}

/* The crash happens inside a traced function, called by another one. */
TRACED void crash(int how)
{
	if (how == 's')
		*(volatile int *)(sink & 0) = 1;
	else if (how == 'a')
		abort();
	else
		kill(getpid(), SIGKILL);
}

/* Other bytes do nothing. */
TRACED void obey(int c)
{
	if (c == 's' || c == 'a' || c == 'k')
		crash(c);
	else if (c == 'e')
		exit(7);
	else if (c == 'q')
		exit(0);
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	struct pollfd in = { STDIN_FILENO, POLLIN, 0 };
	int c, crashes;

	o.wait = 0;
	target_ready(&o);
	for (;;) {
		step_two(sink);
		calls_step++;
		if (poll(&in, 1, 1) <= 0)
			continue;
		c = target_getc();
		if (c == EOF) {
			in.fd = -1;
			continue;
		}
		calls_obey++;
		crashes = c == 's' || c == 'a' || c == 'k';
		printf("{\"calls\":{\"step_one\":%ld,\"step_two\":%ld,\"obey\":%ld,"
		       "\"crash\":%d}}\n",
		       calls_step, calls_step, calls_obey, crashes);
		fflush(stdout);
		obey(c);
	}
}
