// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared by the target programs. Each prints "ready PID", waits for a byte on
 * standard input (--start=stdin, the default; --start=now does not wait), works,
 * and prints its own counts as one JSON object. SIGALRM ends it after ten minutes (--limit=SECONDS).
 */
#ifndef TARGET_H
#define TARGET_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define TRACED __attribute__((noinline, optnone))
#else
/* Not inlined, not cloned, not folded with another: one call is one entry. */
#define TRACED __attribute__((noipa))
#endif

struct target_options {
	int wait;        /* for a byte before the work */
	long repeat;     /* --repeat=N: number of times to do the work */
	long before_ms;  /* --before=MS: pause between the byte and the work */
	long after_ms;   /* --after=MS: pause between the work and the end */
	int exit_status; /* --exit=N: exit status if all went right */
	const char *rest; /* last argument that is not an option */
};

static inline void target_pause(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	while (ms > 0 && nanosleep(&t, &t))
		;
}

static inline int target_getc(void)
{
	unsigned char c;

	return read(STDIN_FILENO, &c, 1) == 1 ? c : EOF;
}

static inline struct target_options target_parse(int argc, char **argv)
{
	struct target_options o = { 1, 1, 0, 0, 0, NULL };
	unsigned limit = 600;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--start=now"))
			o.wait = 0;
		else if (!strcmp(argv[i], "--start=stdin"))
			o.wait = 1;
		else if (!strncmp(argv[i], "--repeat=", 9))
			o.repeat = atol(argv[i] + 9);
		else if (!strncmp(argv[i], "--limit=", 8))
			limit = (unsigned)atol(argv[i] + 8);
		else if (!strncmp(argv[i], "--before=", 9))
			o.before_ms = atol(argv[i] + 9);
		else if (!strncmp(argv[i], "--after=", 8))
			o.after_ms = atol(argv[i] + 8);
		else if (!strncmp(argv[i], "--exit=", 7))
			o.exit_status = atoi(argv[i] + 7);
		else if (argv[i][0] != '-')
			o.rest = argv[i];
		else {
			fprintf(stderr, "%s: unknown option %s\n", argv[0], argv[i]);
			exit(2);
		}
	}
	alarm(limit);
	return o;
}

static inline void target_ready(const struct target_options *o)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (o->wait)
		target_getc();
	target_pause(o->before_ms);
}

/* Flushes stdout, pauses, and returns main's exit status. */
static inline int target_done(const struct target_options *o, int right)
{
	fflush(stdout);
	target_pause(o->after_ms);
	return right ? o->exit_status : 1;
}

#endif
