// SPDX-License-Identifier: BSD-2-Clause
/*
 * steady CALLS: calls functions CALLS times a second, evenly in steps of 10 ms, until it is killed:
 * requests of nine calls, three deep. For measurements at a known rate of events. Prints "ready"
 * when it begins.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STEP_NS	      10000000
#define REQUEST_CALLS 9
#define KEEP	      __attribute__((noinline, noclone, noipa))
/* Saves a register: an entry that starts with push, as most functions' do, is not single-stepped.
 */
#define PUSH __asm__ volatile("" ::: "rbx")

static volatile uint64_t sink;

#define LEAF(n)                          \
	KEEP void steady_leaf_##n(void); \
	KEEP void steady_leaf_##n(void)  \
	{                                \
		PUSH;                    \
		sink += n;               \
	}
LEAF(1)
LEAF(2)
LEAF(3)
LEAF(4)
LEAF(5)
LEAF(6)

KEEP void steady_parse(void);
KEEP void steady_parse(void)
{
	PUSH;
	steady_leaf_1();
	steady_leaf_2();
	steady_leaf_3();
	sink++;
}

KEEP void steady_reply(void);
KEEP void steady_reply(void)
{
	PUSH;
	steady_leaf_4();
	steady_leaf_5();
	steady_leaf_6();
	sink++;
}

KEEP void steady_request(void);
KEEP void steady_request(void)
{
	PUSH;
	steady_parse();
	steady_reply();
	sink++;
}

int main(int argc, char **argv)
{
	double per_step = argc > 1 ? atof(argv[1]) * STEP_NS * 1e-9 : 0, due = 0;
	struct timespec at;

	if (!(per_step > 0)) {
		fprintf(stderr, "usage: steady CALLS\n");
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &at);
	puts("ready");
	fflush(stdout);
	for (;;) {
		for (due += per_step; due >= REQUEST_CALLS; due -= REQUEST_CALLS)
			steady_request();
		at.tv_nsec += STEP_NS;
		at.tv_sec += at.tv_nsec / 1000000000;
		at.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
}
