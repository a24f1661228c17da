// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions that measure their own duration with the time-stamp counter: about 150 ns, 1 us, 10 us and
 * 1 ms, 150 ns once in 1 ms (rare), and 1 ms of walking through more memory than a core's caches hold (walk),
 * each once with a first instruction that the kernel emulates (cheap_*) and once with one that it
 * single-steps (stepped_*); and functions that call ten cheap ones (parent_cheap) or stepped ones
 * (parent_stepped). The output has the measured ticks of each call, for a parent the sum of its callees'. What a function
 * takes before its first reading of the counter and after its last one belongs to it, too: that is measured on a twin
 * without probes, against one that does nothing, and added.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <x86intrin.h>

#include "target.h"

#define CALLS 200
#define SLOW_CALLS 200 /* what a probe takes after 1 ms differs by more than 1 us from call to call */
#define NESTED 10
#define NTIMED 12
#define NFUNCTIONS (NTIMED + 2)

static uint64_t wanted, measured; /* ticks, of the newest call */
static uint64_t outside;	  /* ticks of each call that it does not measure */
static bool walking;
static char memory[4 << 20];

static void walk(void)
{
	static size_t place;

	for (int i = 0; i < 8; i++) {
		memory[place]++;
		place = (place + 4096 + 64) % sizeof(memory);
	}
}

__attribute__((used, noinline)) void spend(void)
{
	unsigned int aux;
	uint64_t before = __rdtscp(&aux), now;

	do {
		if (walking)
			walk();
		now = __rdtscp(&aux);
	} while (now - before < wanted);
	measured = now - before;
}

#define FUNCTION(name, prologue, body, epilogue)                                               \
	__asm__(".pushsection .text\n.balign 64\n.globl " #name "\n.type " #name ", @function\n" \
		#name ":\n" prologue "\n" body "\n" epilogue "\n	ret\n"                       \
		".size " #name ", .-" #name "\n.popsection\n");                                \
	void name(void)

#define CHEAP(name) FUNCTION(name, "	push %rbp", "	call spend", "	pop %rbp")
#define STEPPED(name) FUNCTION(name, "	sub $8, %rsp", "	call spend", "	add $8, %rsp")

CHEAP(twin);
FUNCTION(idle_twin, "	push %rbp", "", "	pop %rbp");

CHEAP(cheap_150ns);
CHEAP(cheap_1us);
CHEAP(cheap_10us);
CHEAP(cheap_1ms);
CHEAP(cheap_rare);
CHEAP(cheap_walk);
STEPPED(stepped_150ns);
STEPPED(stepped_1us);
STEPPED(stepped_10us);
STEPPED(stepped_1ms);
STEPPED(stepped_rare);
STEPPED(stepped_walk);

static const struct {
	const char *name;
	void (*call)(void);
	double ns;
	int calls;
	double pause_ns; /* before each call */
	bool walks;
} functions[NTIMED] = {
	{ "cheap_150ns", cheap_150ns, 150, CALLS, 0, false },
	{ "cheap_1us", cheap_1us, 1000, CALLS, 0, false },
	{ "cheap_10us", cheap_10us, 10000, CALLS, 0, false },
	{ "cheap_1ms", cheap_1ms, 1000000, SLOW_CALLS, 0, false },
	{ "stepped_150ns", stepped_150ns, 150, CALLS, 0, false },
	{ "stepped_1us", stepped_1us, 1000, CALLS, 0, false },
	{ "stepped_10us", stepped_10us, 10000, CALLS, 0, false },
	{ "stepped_1ms", stepped_1ms, 1000000, SLOW_CALLS, 0, false },
	{ "cheap_rare", cheap_rare, 150, SLOW_CALLS, 1000000, false },
	{ "stepped_rare", stepped_rare, 150, SLOW_CALLS, 1000000, false },
	{ "cheap_walk", cheap_walk, 1000000, SLOW_CALLS, 0, true },
	{ "stepped_walk", stepped_walk, 1000000, SLOW_CALLS, 0, true },
};

static struct log {
	const char *name;
	int n;
	uint64_t ticks[CALLS * (NESTED + 1)];
} logs[NFUNCTIONS];

static void add(struct log *log, uint64_t ticks)
{
	log->ticks[log->n++] = ticks;
}

TRACED void parent_cheap(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < NESTED; i++) {
		cheap_1us();
		add(&logs[1], measured + outside);
		sum += measured + outside;
	}
	add(&logs[NTIMED], sum);
}

TRACED void parent_stepped(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < NESTED; i++) {
		stepped_1us();
		add(&logs[5], measured + outside);
		sum += measured + outside;
	}
	add(&logs[NTIMED + 1], sum);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Ticks from before a call to after it, without those that it measures: the median of some calls. */
static uint64_t around(void (*call)(void))
{
	uint64_t ticks[CALLS + 1], before;
	unsigned int aux;

	for (int i = 0; i <= CALLS; i++) {
		measured = 0;
		before = __rdtscp(&aux);
		call();
		ticks[i] = __rdtscp(&aux) - before - measured;
	}
	qsort(ticks, CALLS + 1, sizeof(ticks[0]), by_value);
	return ticks[CALLS / 2];
}

static uint64_t unmeasured(void)
{
	uint64_t all, nothing;

	wanted = 0;
	all = around(twin);
	nothing = around(idle_twin);
	return all > nothing ? all - nothing : 0;
}

static double ticks_a_ns(void)
{
	struct timespec begin, end, pause = { 0, 20000000 };
	uint64_t from, to;
	unsigned int aux;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	from = __rdtscp(&aux);
	nanosleep(&pause, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	to = __rdtscp(&aux);
	return (double)(to - from) / ((double)(end.tv_sec - begin.tv_sec) * 1e9 +
				      (double)(end.tv_nsec - begin.tv_nsec));
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	double rate = ticks_a_ns();

	for (int f = 0; f < NTIMED; f++)
		logs[f].name = functions[f].name;
	logs[NTIMED].name = "parent_cheap";
	logs[NTIMED + 1].name = "parent_stepped";
	target_ready(&o);
	outside = unmeasured();
	for (int f = 0; f < NTIMED; f++) {
		for (int i = 0; i < functions[f].calls; i++) {
			walking = false;
			wanted = (uint64_t)(functions[f].pause_ns * rate);
			spend();
			walking = functions[f].walks;
			wanted = (uint64_t)(functions[f].ns * rate);
			functions[f].call();
			add(&logs[f], measured + outside);
		}
	}
	walking = false;
	wanted = (uint64_t)(1000 * rate);
	for (int i = 0; i < CALLS; i++) {
		parent_cheap();
		parent_stepped();
	}
	printf("{");
	for (int f = 0; f < NFUNCTIONS; f++) {
		printf("%s\"%s\":[", f ? "," : "", logs[f].name);
		for (int i = 0; i < logs[f].n; i++)
			printf("%s%llu", i ? "," : "", (unsigned long long)logs[f].ticks[i]);
		printf("]");
	}
	printf("}\n");
	return target_done(&o, 1);
}
