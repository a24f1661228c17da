// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions that measure their own duration with the time-stamp counter: about 150 ns, 1 us, 10 us and
 * 1 ms, each once with a first instruction that the kernel emulates (cheap_*) and once with one that it
 * single-steps (stepped_*); and functions that call ten cheap ones (parent_cheap) or stepped ones
 * (parent_stepped). The output has the measured ticks of each call, for a parent the sum of its callees'.
 */
#include <stdint.h>
#include <x86intrin.h>

#include "target.h"

#define CALLS 200
#define SLOW_CALLS 20
#define NESTED 10
#define NFUNCTIONS 10

static uint64_t wanted, measured; /* ticks, of the newest call */

__attribute__((used, noinline)) void spend(void)
{
	unsigned int aux;
	uint64_t before = __rdtscp(&aux), now;

	do {
		now = __rdtscp(&aux);
	} while (now - before < wanted);
	measured = now - before;
}

#define FUNCTION(name, prologue, epilogue)                                                     \
	__asm__(".pushsection .text\n.balign 64\n.globl " #name "\n.type " #name ", @function\n" \
		#name ":\n" prologue "\n	call spend\n" epilogue "\n	ret\n"               \
		".size " #name ", .-" #name "\n.popsection\n");                                \
	void name(void)

#define CHEAP(name) FUNCTION(name, "	push %rbp", "	pop %rbp")
#define STEPPED(name) FUNCTION(name, "	sub $8, %rsp", "	add $8, %rsp")

CHEAP(cheap_150ns);
CHEAP(cheap_1us);
CHEAP(cheap_10us);
CHEAP(cheap_1ms);
STEPPED(stepped_150ns);
STEPPED(stepped_1us);
STEPPED(stepped_10us);
STEPPED(stepped_1ms);

static const struct {
	const char *name;
	void (*call)(void);
	double ns;
	int calls;
} functions[NFUNCTIONS - 2] = {
	{ "cheap_150ns", cheap_150ns, 150, CALLS },
	{ "cheap_1us", cheap_1us, 1000, CALLS },
	{ "cheap_10us", cheap_10us, 10000, CALLS },
	{ "cheap_1ms", cheap_1ms, 1000000, SLOW_CALLS },
	{ "stepped_150ns", stepped_150ns, 150, CALLS },
	{ "stepped_1us", stepped_1us, 1000, CALLS },
	{ "stepped_10us", stepped_10us, 10000, CALLS },
	{ "stepped_1ms", stepped_1ms, 1000000, SLOW_CALLS },
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
		add(&logs[1], measured);
		sum += measured;
	}
	add(&logs[8], sum);
}

TRACED void parent_stepped(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < NESTED; i++) {
		stepped_1us();
		add(&logs[5], measured);
		sum += measured;
	}
	add(&logs[9], sum);
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

	for (int f = 0; f < NFUNCTIONS - 2; f++)
		logs[f].name = functions[f].name;
	logs[8].name = "parent_cheap";
	logs[9].name = "parent_stepped";
	target_ready(&o);
	for (int f = 0; f < NFUNCTIONS - 2; f++) {
		wanted = (uint64_t)(functions[f].ns * rate);
		for (int i = 0; i < functions[f].calls; i++) {
			functions[f].call();
			add(&logs[f], measured);
		}
	}
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
