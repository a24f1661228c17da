// SPDX-License-Identifier: BSD-2-Clause
/*
 * Mostly idle: calls tick() every 10 ms (or MS: `sleeper MS`) until SIGTERM or SIGINT, then prints the
 * number of calls. Its rings stay nearly empty.
 */
#include <signal.h>

#include "target.h"

static volatile sig_atomic_t over;
static volatile long ticks;

static void end(int sig)
{
	(void)sig;
	over = 1;
}

TRACED void tick(long n)
{
	ticks = n + 1;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	struct sigaction sa = { .sa_handler = end };

	const long ms = o.rest ? atol(o.rest) : 10;

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	o.wait = 0;
	target_ready(&o);
	while (!over) {
		tick(ticks);
		usleep((useconds_t)ms * 1000);
	}
	printf("{\"calls\":{\"tick\":%ld}}\n", ticks);
	return target_done(&o, 1);
}
