// SPDX-License-Identifier: BSD-2-Clause
/*
 * A plain C program without exception tables that loads a C++ plugin (its
 * argument) and lets it throw through functions of its own. Bytes on standard input: first
 * "l" loads, then "g" works; with --start=now it does both at once. A second thread is
 * inside traced calls all the time.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "target.h"

#define THROWS 1000

static void (*throw_it)(long n);
static long calls_visit, calls_through, calls_before, calls_spin;
static atomic_int over;
static volatile long sink;

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

/* Called by the plugin; each call ends by an exception. */
TRACED long visit(long n)
{
	calls_visit++;
	return through(n) + 1;
}

TRACED long spin_inner(long n)
{
	sink = n;
	return n + 1;
}

TRACED long spin_outer(long n)
{
	return spin_inner(n) + spin_inner(n + 1);
}

static void *spin(void *unused)
{
	while (!over) {
		for (int n = 0; n < 10; n++, calls_spin++)
			spin_outer(n);
		usleep(100);
	}
	return unused;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	long (*run)(long (*callback)(long), long times);
	long answer;
	pthread_t spinner;
	void *plugin;

	target_ready(&o);
	if (pthread_create(&spinner, NULL, spin, NULL))
		return 1;
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
	over = 1;
	pthread_join(spinner, NULL);
	printf("{\"answer\":%ld,\"calls\":{\"before_load\":%ld,\"visit\":%ld,\"through\":%ld,"
	       "\"spin_outer\":%ld,\"spin_inner\":%ld}}\n",
	       answer, calls_before, calls_visit, calls_through, calls_spin, 2 * calls_spin);
	return target_done(&o, answer == o.repeat * THROWS);
}
