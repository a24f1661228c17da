// SPDX-License-Identifier: BSD-2-Clause
/*
 * A plain C program without exception tables that loads a C++ plugin (its
 * argument) and lets it throw through functions of its own. Bytes on standard input: first
 * "l" loads, then "g" works; with --start=now both come at once.
 */
#include <dlfcn.h>

#include "target.h"

#define THROWS 1000

static void (*throw_it)(long n);
static long calls_visit, calls_through, calls_before;

TRACED long before_load(long n)
{
	calls_before++;
	return n + 1;
}

TRACED long through(long n)
{
	calls_through++;
	throw_it(n);
	return n;
}

/* Called by the plugin, and left by an exception each time. */
TRACED long visit(long n)
{
	calls_visit++;
	return through(n) + 1;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	long (*run)(long (*callback)(long), long times);
	long answer;
	void *plugin;

	target_ready(&o);
	for (long n = 0; n < 100; n++)
		before_load(n);
	plugin = dlopen(o.rest, RTLD_NOW);
	if (!plugin) {
		fprintf(stderr, "dlopener: %s\n", dlerror());
		return 1;
	}
	*(void **)&run = dlsym(plugin, "plugin_run");
	*(void **)&throw_it = dlsym(plugin, "plugin_throw");
	printf("loaded\n");
	fflush(stdout);
	if (o.wait)
		target_getc();
	answer = run(visit, o.repeat * THROWS);
	printf("{\"answer\":%ld,\"calls\":{\"before_load\":%ld,\"visit\":%ld,\"through\":%ld}}\n",
	       answer, calls_before, calls_visit, calls_through);
	return target_done(&o, answer == o.repeat * THROWS);
}
