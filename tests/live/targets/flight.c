// SPDX-License-Identifier: BSD-2-Clause
/*
 * For the flight recorder: --threads=N workers (2) each call busy() --load=N times (20) per millisecond,
 * 0: without a pause; the main thread calls maybe_slow() every millisecond. Bytes on standard input:
 *
 *   l  the next call of maybe_slow() takes 60 ms     L  3 s        r  calls rare() once
 *   s  SIGSEGV, a abort(), k SIGKILL, e exit(7), q exit(0), with all threads at work
 *   c  forks a child that dies of SIGSEGV            C  forks one that ends with status 3
 *   n  nothing
 *
 * After each byte, and before it ends, it prints the calls so far: "did {...}".
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "target.h"

static volatile long sink;
static long load = 20, calls_slow, calls_rare;
static long calls_maybe;

static TRACED long step(long n)
{
	return n + 1;
}

/* Starts with a push, so that its probe is cheap. */
TRACED long busy(long n)
{
	sink = step(n);
	return sink;
}

/* @number counts the calls from 0: no number may be missing inside a dump. */
TRACED void maybe_slow(int slow, long number)
{
	sink = number;
	target_pause(slow);
}

TRACED void rare(void)
{
	sink = 1;
}

TRACED void crash(int how)
{
	if (how == 's')
		*(volatile int *)(sink & 0) = 1;
	else if (how == 'a')
		abort();
	else
		kill(getpid(), SIGKILL);
}

static void *worker(void *arg)
{
	for (;;) {
		for (long i = 0; i < (load ? load : 1000); i++)
			busy(i);
		if (load)
			target_pause(1);
	}
	return arg;
}

static void fork_child(int how)
{
	pid_t pid = fork();

	if (!pid) {
		rare();
		if (how == 'c')
			crash('s');
		_exit(3);
	}
	waitpid(pid, NULL, 0);
}

static void obey(int c, int *slow)
{
	*slow = c == 'l' ? 60 : c == 'L' ? 3000 : 0;
	calls_slow += *slow != 0;
	calls_rare += c == 'r';
	if (c == 'r')
		rare();
	else if (c == 'c' || c == 'C')
		fork_child(c);
	printf("did {\"slow\":%ld,\"rare\":%ld,\"maybe_slow\":%ld}\n", calls_slow, calls_rare,
	       calls_maybe);
	fflush(stdout);
	if (c == 's' || c == 'a' || c == 'k')
		crash(c);
	if (c == 'e' || c == 'q')
		exit(c == 'e' ? 7 : 0);
}

int main(int argc, char **argv)
{
	struct pollfd in = { STDIN_FILENO, POLLIN, 0 };
	struct target_options o = { 0 };
	long threads = 2;
	pthread_t t;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--threads=", 10))
			threads = atol(argv[i] + 10);
		else if (!strncmp(argv[i], "--load=", 7))
			load = atol(argv[i] + 7);
		else
			return 2;
	}
	alarm(3600);
	for (long i = 0; i < threads; i++)
		pthread_create(&t, NULL, worker, NULL);
	target_ready(&o);
	for (;;) {
		int slow = 0, c;

		if (poll(&in, 1, 1) > 0) {
			c = target_getc();
			if (c == EOF)
				in.fd = -1;
			else
				obey(c, &slow);
		}
		maybe_slow(slow, calls_maybe++);
	}
}
