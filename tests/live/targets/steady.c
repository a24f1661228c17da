// SPDX-License-Identifier: BSD-2-Clause
/*
 * Requests whose functions each take a fixed time by the time-stamp counter, whatever the processor's speed and load are: each
 * waits until the counter has advanced by its number of ticks. An argument NAME:PERCENT makes one of them take so many percent
 * of its time, "more:NAME" calls it twice. The output has the calls of each function and the ticks that it measured itself.
 */
#include <stdint.h>
#include <x86intrin.h>

#include "target.h"

#define REQUESTS 500 /* for each --repeat */

enum { PARSE, CHECK, LOOKUP, WORK, FORMAT, SEND, LOG, HANDLE, FUNCTIONS };

static const char *const names[FUNCTIONS] = { "st_parse", "st_check", "st_lookup", "st_work",
					      "st_format", "st_send", "st_log", "st_handle" };
/* about 2 to 20 us */
static uint64_t wanted[FUNCTIONS] = { 8000, 6000, 20000, 50000, 12000, 30000, 9000, 5000 };
static uint64_t calls[FUNCTIONS], inside[FUNCTIONS];
static int twice = -1;

/* A call: the function that makes it begins with a push. */
static __attribute__((noinline)) uint64_t ticks(void)
{
	unsigned int aux;

	return __rdtscp(&aux);
}

static inline __attribute__((always_inline)) void spend(int function)
{
	uint64_t before = ticks(), now;

	do {
		now = ticks();
	} while (now - before < wanted[function]);
	calls[function]++;
	inside[function] += now - before;
}

TRACED void st_parse(void) { spend(PARSE); }
TRACED void st_check(void) { spend(CHECK); }
TRACED void st_lookup(void) { spend(LOOKUP); }
TRACED void st_work(void) { spend(WORK); }
TRACED void st_format(void) { spend(FORMAT); }
TRACED void st_send(void) { spend(SEND); }
TRACED void st_log(void) { spend(LOG); }

static void (*const functions[])(void) = { st_parse, st_check, st_lookup, st_work, st_format, st_send, st_log };

TRACED void st_handle(void)
{
	spend(HANDLE);
	for (int i = 0; i < HANDLE; i++) {
		functions[i]();
		if (i == twice)
			functions[i]();
	}
}

static int function_of(const char *name, size_t length)
{
	for (int i = 0; i < FUNCTIONS; i++)
		if (strlen(names[i]) == length && !strncmp(names[i], name, length))
			return i;
	fprintf(stderr, "steady: there is no function %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	const char *colon = o.rest ? strchr(o.rest, ':') : NULL;

	if (o.rest && !strncmp(o.rest, "more:", 5))
		twice = function_of(o.rest + 5, strlen(o.rest + 5));
	else if (colon) {
		int f = function_of(o.rest, (size_t)(colon - o.rest));

		wanted[f] = wanted[f] * (uint64_t)atol(colon + 1) / 100;
	}
	target_ready(&o);
	for (long i = 0; i < REQUESTS * o.repeat; i++)
		st_handle();
	printf("{\"calls\":{");
	for (int i = 0; i < FUNCTIONS; i++)
		printf("%s\"%s\":%lu", i ? "," : "", names[i], (unsigned long)calls[i]);
	printf("},\"ticks\":{");
	for (int i = 0; i < FUNCTIONS; i++)
		printf("%s\"%s\":%lu", i ? "," : "", names[i], (unsigned long)inside[i]);
	printf("}}\n");
	return target_done(&o, 1);
}
