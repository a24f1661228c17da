// SPDX-License-Identifier: BSD-2-Clause
/*
 * Preloaded: a thread that reads the clock and takes a page fault again and again, so that it notices when it cannot
 * run and when the address space is locked. SIGUSR1 appends the longest time between two rounds, in us, to the file
 * that GAPS names.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t asked;

static void ask(int sig)
{
	(void)sig;
	asked = 1;
}

static long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static void *watch(void *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	volatile char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long last = now_us(), longest = 0;

	while (page != MAP_FAILED) {
		long now;

		madvise((void *)page, 4096, MADV_DONTNEED);
		*page = 1;
		now = now_us();
		if (now - last > longest)
			longest = now - last;
		last = now;
		if (asked) {
			asked = 0;
			dprintf(fd, "%ld\n", longest);
			longest = 0;
			last = now_us();
		}
	}
	return NULL;
}

__attribute__((constructor)) static void start(void)
{
	pthread_t thread;
	char *path = getenv("GAPS");

	if (path && !pthread_create(&thread, NULL, watch, path))
		signal(SIGUSR1, ask);
}
