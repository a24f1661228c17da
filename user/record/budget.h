// SPDX-License-Identifier: BSD-2-Clause
/*
 * What record --max-overhead does while it records: from how often each function is called and what its probes take, it
 * chooses how much of it is recorded, so that the probes of all functions together take at most the budget.
 *
 * A function has a level: 0, every call is recorded; k, one call in 2^k is, and all are counted; or its probes are
 * out, and nothing is known of it. When the budget would be exceeded, the functions that take most go first: their
 * probes are taken out if even counting their calls takes too much, else they are sampled as coarsely as needed. When
 * there is room for a while, levels fall again one after the other, and probes are put back for a try; each time the try fails,
 * the next one comes twice as late.
 *
 * Thousands of functions whose rates nobody knows can stop a program before the first step. Where their probes can wait
 * (waits), they go in group by group: the first group is small, the next one is twice as large if nothing had to be
 * limited meanwhile, smaller if more than the credit was taken, and none goes in before that is made up for. While the program does not run,
 * nothing is learned: then only so many go in as can be taken out soon, by how long putting them in took.
 *
 * What was taken beyond the budget is a debt, and nothing is relaxed before the target has run long enough to make up for
 * it; what was not used is credit, for short bursts, of at most the budget of a quarter of a second of CPU time. So over any longer time
 * the probes take what the budget allows, plus what they take until user space reacts (KX_BUDGET_WAKE_NS of bpf/wire.h and
 * a context switch).
 *
 * Putting probes in and taking them out takes time from the target, too: each byte is written in each process, whose other
 * CPUs are interrupted for it. That is charged like calls (kx_budget_charge), and is what lets thousands of probes go in slowly.
 *
 * This file only decides: it reads no clock and no counter (recording_budget.c does), so its test needs none.
 */
#ifndef KX_BUDGET_H
#define KX_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KX_BUDGET_OUT 255 /* a level: the probes are out */

struct kx_budget_function {
	/* To be set before the first step. */
	double recorded_ns, counted_ns; /* of the target's CPU time, a call */
	bool fixed;	/* always recorded whole */
	bool stays;	/* its probes cannot be taken out singly */
	bool waits;	/* its probes have not been in yet; the level is KX_BUDGET_OUT then */
	uint32_t together; /* neighbours with the same number go in together unless ops.divide parts them; 0: alone */

	uint8_t level;	/* 0 to KX_BUDGET_MAX_LEVEL, or KX_BUDGET_OUT */
	bool limited;	/* has been sampled or taken out at some time */
	uint64_t calls; /* counted, until the last step */
	double out_seconds; /* in which its probes were out, until the last step */

	double rate;	/* calls a second of the target's own CPU time: the highest, which fades */
	double seen, seen_own; /* calls, seconds of that CPU time, since the rate was last looked at */
	double since;	/* when the level was last changed, seconds */
	double backoff; /* seconds until the next try */
};

/* All borrowed; called from kx_budget_step. */
struct kx_budget_ops {
	uint64_t (*calls)(void *ctx, size_t index);
	/* Whether its probes are out: those of others, which are out themselves, may have taken them along. */
	bool (*is_out)(void *ctx, size_t index);
	/* The group is full: the function and those after it that go in together get a number of their own. 0: they cannot be parted. */
	uint32_t (*divide)(void *ctx, size_t index);
	/* The level has changed; @from: the one before. */
	void (*change)(void *ctx, size_t index, uint8_t from);
	/* What a call takes beyond its function's figures if calls come so many seconds after each other, ns. */
	double (*extra_ns)(void *ctx, double pause);
	/* All changes of a step are made. */
	void (*changed)(void *ctx);
	void *ctx;
};

struct kx_budget {
	double share; /* of the target's CPU time, 0.05 for 5 % */
	struct kx_budget_ops ops;
	struct kx_budget_function *functions; /* owned */
	size_t n;
	double start, then; /* seconds: of the first step, of the last one */
	double debt; /* seconds of CPU time; negative: credit */
	double relaxed; /* when levels last fell */
	size_t next;	/* no function before this one waits */
	size_t group;	/* how many go in next */
	double joined;	/* when the last group went in */
	double ran;	/* CPU time of the target since then, seconds */
	double untried; /* how long putting in those took that went in since it last ran, seconds */
	double let_in;	/* when probes that waited last went in for the first time; 0: none */
	size_t never_in; /* functions whose probes still waited for that at the end. Set by kx_budget_end */
	double spent, own; /* seconds of CPU time: of the probes, of the target without them */
};

/* Begins at @now (seconds) with @n functions, all at level 0. Errors: -ENOMEM. Free with kx_budget_free. */
int kx_budget_init(struct kx_budget *b, double share, const struct kx_budget_ops *ops, size_t n,
		   double now);
void kx_budget_free(struct kx_budget *b);
/* There are @n functions now; the new ones are zero but for their level's time. Errors: -ENOMEM. */
int kx_budget_grow(struct kx_budget *b, size_t n);

/*
 * One step, at @now: the target has used @cpu seconds of CPU time since the last one, the probes' time included. Only in the share @counted of
 * that (0 to 1) its calls were counted: in the rest there were as many.
 */
void kx_budget_step(struct kx_budget *b, double now, double cpu, double counted);

/* Changing probes has taken @seconds of the target's CPU time; of the clock, putting them in has taken @put_in seconds. */
void kx_budget_charge(struct kx_budget *b, double seconds, double put_in);

/* Functions wait: they go in soon. */
bool kx_budget_waits(const struct kx_budget *b);

/* The recording ends at @now: completes out_seconds, and decides nothing. Functions that wait are limited. */
void kx_budget_end(struct kx_budget *b, double now);

/*
 * Whether a step is worth its time, when the probes have taken about @spent seconds since the last one: it is due, or they
 * may exceed the budget.
 */
bool kx_budget_is_due(const struct kx_budget *b, double now, double spent);

#endif
