// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whether jumps in the code of running processes are harmless, without making any:
 *   in_process_verdict PID...
 * prints for each "PROGRAM: yes", or why not, the modules that are refused alone, and the place of a thread's id; with
 * --times how many milliseconds of CPU time the check of the process took, and that of its modules.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach/in_process_check.h"
#include "attach/thread_layout.h"

/* CPU time of all threads, in milliseconds. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int show(pid_t pid, bool times)
{
	double from, between;
	struct kx_modules mods;
	struct kx_thread_layout layout;
	struct kx_err err;

	if (kx_modules_of_process(pid, &mods, &err)) {
		fprintf(stderr, "in_process_verdict: %s\n", err.text);
		return 1;
	}
	from = now();
	printf("%s: %s\n", mods.items[0].name, kx_in_process_check(pid, &mods, &err) ? err.text : "yes");
	between = now();
	for (size_t i = 0; i < mods.count; i++)
		if (kx_in_process_check_module(pid, &mods.items[i], &err))
			printf("module %s: %s\n", mods.items[i].name, err.text);
	if (times)
		printf("%zu modules: %.1f ms and %.1f ms\n", mods.count, between - from, now() - between);
	if (kx_thread_layout_read(pid, &layout, &err))
		printf("thread id: %s\n", err.text);
	else
		printf("thread id: at %#" PRIx32 "\n", layout.tid);
	kx_modules_free(&mods);
	return 0;
}

int main(int argc, char **argv)
{
	const bool times = argc > 1 && !strcmp(argv[1], "--times");
	int status = 0;

	if (argc < 2 + times) {
		fprintf(stderr, "usage: in_process_verdict [--times] PID...\n");
		return 2;
	}
	for (int i = 1 + times; i < argc; i++)
		status |= show(atoi(argv[i]), times);
	return status;
}
