// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures how soon newly mapped code is traced:
 *     late LIBRARY MS            loads it and calls its plug_work for MS milliseconds
 *     late --exec PROGRAM MS     executes PROGRAM (late-child, another file of the same program),
 *                                which calls late_work for the same time
 * Each call's argument is the time in nanoseconds since the start of the dlopen or exec. Prints
 * the number of calls and the argument of the last one.
 */
#include <dlfcn.h>

#include "target.h"

static volatile long sink;

TRACED void late_work(long ns)
{
	sink = ns;
}

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static int call_for(void (*function)(long ns), long began, long ms, const char *name)
{
	long calls = 0, last;

	do {
		last = now() - began;
		function(last);
		calls++;
		usleep(50);
	} while (last < ms * 1000000);
	printf("{\"calls\":{\"%s\":%ld},\"last\":%ld}\n", name, calls, last);
	return 0;
}

int main(int argc, char **argv)
{
	struct target_options o = { .wait = 1 };
	void (*plug_work)(long ns);
	long began;
	void *plugin;

	if (argc == 3 && strchr(argv[0], ' ')) /* "late BEGAN MS" */
		return call_for(late_work, atol(argv[1]), atol(argv[2]), "late_work");
	if (argc > 3 && !strcmp(argv[1], "--exec")) {
		char text[32];

		target_ready(&o);
		snprintf(text, sizeof(text), "%ld", now());
		execl(argv[2], "late child", text, argv[3], NULL);
		return 1;
	}
	if (argc != 3)
		return 2;
	target_ready(&o);
	began = now();
	plugin = dlopen(argv[1], RTLD_NOW);
	if (!plugin) {
		fprintf(stderr, "late: %s\n", dlerror());
		return 1;
	}
	*(void **)&plug_work = dlsym(plugin, "plug_work");
	return call_for(plug_work, began, atol(argv[2]), "plug_work");
}
