// SPDX-License-Identifier: BSD-2-Clause
#include "record/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "bpf/wire.h"

#define CREDIT_SECONDS 0.25  /* of CPU time, whose budget can be saved up */
#define LOOK_AHEAD     0.1   /* seconds: excess that would use up the credit within that time is too much */
#define STEP_SECONDS   0.1
#define LEAST_STEP     0.002 /* shorter ones measure too little */
#define LEAST_CPU      0.01  /* CPUs: so much is assumed of a program that hardly runs */
#define LEAST_OWN      0.05  /* of the CPU time: what the probes take is not known exactly */
#define RELAX_SECONDS  1.0
#define FADE_SECONDS   10.0  /* in which a rate falls to about a third */
#define FEW_CALLS      16    /* fewer make no rate within */
#define RATE_SECONDS   0.1   /* of the target's own CPU time */
#define FIRST_BACKOFF  1.0
#define LAST_BACKOFF   64.0
#define TRIES	       8     /* probes put back at a time */
#define FIRST_GROUP    16    /* functions whose probes go in first, of those that wait */
#define LAST_GROUP     256   /* attaching more takes too long to react meanwhile */
#define IDLE_GROUP     64    /* the largest while the target hardly runs */
#define LEAST_RUN      0.004 /* seconds of CPU time */
#define UNTRIED_SECONDS 0.4  /* whose budget putting probes in may take before the target runs: taking them out takes longer */
#define JOIN_SECONDS   0.02  /* between groups */

/* What is aimed at, of the budget: with a debt, without one, and when levels fall. */
#define AIM_IN_DEBT 0.5
#define AIM	    0.8
#define AIM_RELAXED 0.6

static double greater(double a, double b)
{
	return a > b ? a : b;
}

int kx_budget_init(struct kx_budget *b, double share, const struct kx_budget_ops *ops, size_t n,
		   double now)
{
	memset(b, 0, sizeof(*b));
	b->share = share;
	b->ops = *ops;
	b->start = b->then = b->relaxed = now;
	b->debt = -share * CREDIT_SECONDS;
	b->group = FIRST_GROUP;
	return kx_budget_grow(b, n);
}

void kx_budget_free(struct kx_budget *b)
{
	free(b->functions);
	memset(b, 0, sizeof(*b));
}

int kx_budget_grow(struct kx_budget *b, size_t n)
{
	size_t i = b->n;

	if (KX_ARRAY_EXTEND(b->functions, b->n, n))
		return -ENOMEM;
	for (; i < b->n; i++) {
		b->functions[i].since = b->then;
		b->functions[i].backoff = FIRST_BACKOFF;
	}
	return 0;
}

/* Nanoseconds a call at that level, on average. */
static double call_ns(const struct kx_budget_function *f, uint8_t level)
{
	if (level == KX_BUDGET_OUT)
		return 0;
	return f->counted_ns + (f->recorded_ns - f->counted_ns) / (double)(1u << level);
}

/* The share of the target's own CPU time that the function would take. */
static double share_of(const struct kx_budget_function *f, uint8_t level)
{
	return f->rate * call_ns(f, level) * 1e-9;
}

static double share_of_all(const struct kx_budget *b)
{
	double sum = 0;

	for (size_t i = 0; i < b->n; i++)
		sum += share_of(&b->functions[i], b->functions[i].level);
	return sum;
}

static void change(struct kx_budget *b, struct kx_budget_function *f, uint8_t level)
{
	uint8_t from = f->level;

	if (from == level)
		return;
	f->level = level;
	f->since = b->then;
	f->seen = f->seen_own = 0;
	f->limited |= level > 0;
	b->ops.change(b->ops.ctx, (size_t)(f - b->functions), from);
}

/* The function that takes most at @level, or at its own (@level negative), and may be changed; NULL: none. */
static struct kx_budget_function *greatest(struct kx_budget *b, int level, bool leaves)
{
	struct kx_budget_function *found = NULL;
	double most = 0;

	for (size_t i = 0; i < b->n; i++) {
		struct kx_budget_function *f = &b->functions[i];
		double share;

		if (f->fixed || f->level == KX_BUDGET_OUT || (leaves && f->stays) ||
		    (level < 0 && f->level >= KX_BUDGET_MAX_LEVEL))
			continue;
		share = share_of(f, level < 0 ? f->level : (uint8_t)level);
		if (share > most) {
			most = share;
			found = f;
		}
	}
	return found;
}

/* What all that may be sampled would take if it were sampled as coarsely as possible. */
static double least_share(const struct kx_budget *b)
{
	double sum = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct kx_budget_function *f = &b->functions[i];

		if (f->level != KX_BUDGET_OUT)
			sum += share_of(f, f->fixed ? f->level : KX_BUDGET_MAX_LEVEL);
	}
	return sum;
}

/* The lowest level at which the sum, @all with the present one, is within @aim; else the highest. */
static uint8_t level_for(const struct kx_budget_function *f, double all, double aim)
{
	double others = all - share_of(f, f->level);
	uint8_t level = f->level;

	while (level < KX_BUDGET_MAX_LEVEL && others + share_of(f, level) > aim)
		level++;
	return level;
}

static void tighten(struct kx_budget *b, double aim)
{
	struct kx_budget_function *f;
	double all, least = least_share(b);

	while (least > aim && (f = greatest(b, KX_BUDGET_MAX_LEVEL, true))) {
		least -= share_of(f, KX_BUDGET_MAX_LEVEL);
		/* a try has failed, or it is the first time */
		if (f->limited && f->level == KX_BUDGET_MAX_LEVEL)
			f->backoff = f->backoff * 2 < LAST_BACKOFF ? f->backoff * 2 : LAST_BACKOFF;
		change(b, f, KX_BUDGET_OUT);
	}
	all = share_of_all(b);
	while (all > aim && (f = greatest(b, -1, false))) {
		double before = share_of(f, f->level);

		change(b, f, level_for(f, all, aim));
		all += share_of(f, f->level) - before;
	}
}

/* Lowers levels while there is room, the cheapest first. */
static void relax(struct kx_budget *b)
{
	double all = share_of_all(b), aim = b->share * AIM_RELAXED;

	for (;;) {
		struct kx_budget_function *best = NULL;
		double least = 0;

		for (size_t i = 0; i < b->n; i++) {
			struct kx_budget_function *f = &b->functions[i];
			double more;

			if (!f->level || f->level == KX_BUDGET_OUT || b->then - f->since < f->backoff)
				continue;
			more = share_of(f, f->level - 1) - share_of(f, f->level);
			if (!best || more < least) {
				best = f;
				least = more;
			}
		}
		if (!best || all + least > aim)
			return;
		all += least;
		/* the rate is known: no need to try one level after the other */
		if (best->level > 1 && share_of(best, 0) * 4 < b->share)
			change(b, best, 0);
		else
			change(b, best, best->level - 1);
	}
}

static void put_back(struct kx_budget *b)
{
	size_t tries = 0;

	for (size_t i = 0; i < b->n && tries < TRIES; i++) {
		struct kx_budget_function *f = &b->functions[i];

		if (f->level != KX_BUDGET_OUT || f->waits || b->then - f->since < f->backoff)
			continue;
		f->rate = 0; /* it is found out now */
		change(b, f, KX_BUDGET_MAX_LEVEL);
		tries++;
	}
}

/* Whether the function need not go in with those before it, which have filled the group. */
static bool is_apart(struct kx_budget *b, size_t i)
{
	uint32_t together = b->functions[i].together, apart;

	if (!together || together != b->functions[i - 1].together)
		return true;
	apart = b->ops.divide(b->ops.ctx, i);
	for (; apart && i < b->n; i++)
		if (b->functions[i].together == together)
			b->functions[i].together = apart;
	return apart != 0;
}

/* @own: seconds of CPU time that the target has used since the last step. */
static void let_in(struct kx_budget *b, double own)
{
	size_t n = 0;

	if (b->ran >= LEAST_RUN)
		b->untried = 0;
	if (b->untried >= b->share * UNTRIED_SECONDS)
		return;
	for (; b->next < b->n; b->next++) {
		struct kx_budget_function *f = &b->functions[b->next];

		if (!f->waits)
			continue;
		if (n >= b->group && is_apart(b, b->next))
			break;
		f->waits = false;
		if (!f->limited)
			b->let_in = b->then;
		change(b, f, 0);
		n++;
	}
	if (!n)
		return;
	b->joined = b->then;
	b->ran = 0;
	/* what hardly runs shows nothing */
	if (b->group < (own >= LEAST_RUN ? LAST_GROUP : IDLE_GROUP))
		b->group *= 2;
}

/* It was doubled when the last one went in. */
static void shrink_group(struct kx_budget *b)
{
	b->group /= b->debt > 0 ? 8 : 2;
	if (b->group < FIRST_GROUP)
		b->group = FIRST_GROUP;
}

/* What was taken out together with others waits for its turn again. */
static void find_waiting(struct kx_budget *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct kx_budget_function *f = &b->functions[i];

		if (f->level == KX_BUDGET_OUT || !b->ops.is_out(b->ops.ctx, i))
			continue;
		f->level = KX_BUDGET_OUT;
		f->waits = f->limited = true;
		if (i < b->next)
			b->next = i;
	}
}

/* Takes the counts; returns what the probes have taken, seconds of CPU time. */
static double take_counts(struct kx_budget *b, double *calls, double cpu, double counted)
{
	double spent = 0, all = 0, extra_ns;

	for (size_t i = 0; i < b->n; i++) {
		struct kx_budget_function *f = &b->functions[i];
		uint64_t now = b->ops.calls(b->ops.ctx, i);

		calls[i] = (double)(now - f->calls) / counted;
		all += calls[i];
		f->calls = now;
	}
	extra_ns = all > 0 ? b->ops.extra_ns(b->ops.ctx, cpu / all) : 0;
	for (size_t i = 0; i < b->n; i++) {
		const struct kx_budget_function *f = &b->functions[i];

		/* those that came before the probes were out */
		spent += calls[i] *
			 (call_ns(f, f->level == KX_BUDGET_OUT ? KX_BUDGET_MAX_LEVEL : f->level) +
			  extra_ns) * 1e-9;
	}
	return spent;
}

static void take_rate(struct kx_budget_function *f)
{
	double rate = f->seen_own > 0 ? f->seen / f->seen_own : 0;

	if (rate > f->rate)
		f->rate = rate;
	f->seen = f->seen_own = 0;
}

/* A single call in 2 ms makes no rate of 500 calls a second. */
static void take_rates(struct kx_budget *b, const double *calls, double own, double seconds)
{
	double fade = 1 / (1 + seconds / FADE_SECONDS);

	for (size_t i = 0; i < b->n; i++) {
		struct kx_budget_function *f = &b->functions[i];

		if (f->level == KX_BUDGET_OUT) {
			f->out_seconds += seconds;
			continue;
		}
		f->rate *= fade;
		f->seen += calls[i];
		f->seen_own += own;
		if (f->seen >= FEW_CALLS || f->seen_own >= RATE_SECONDS)
			take_rate(f);
		/* a try that goes well */
		if (f->backoff > FIRST_BACKOFF && b->then - f->since > 4 * f->backoff) {
			f->backoff /= 2;
			f->since = b->then;
		}
	}
}

/* Many functions that are called a few times each may be what takes too much. */
static void take_all_rates(struct kx_budget *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->functions[i].level != KX_BUDGET_OUT && b->functions[i].seen > 0)
			take_rate(&b->functions[i]);
}

/* So much that more may be recorded. */
static bool has_credit(const struct kx_budget *b)
{
	return b->debt <= -b->share * CREDIT_SECONDS / 2;
}

void kx_budget_step(struct kx_budget *b, double now, double cpu, double counted)
{
	double seconds = now - b->then, spent, own, excess, debt;
	double *calls = calloc(b->n + 1, sizeof(*calls));

	if (!calls || seconds <= 0) {
		free(calls);
		return; /* the next one takes all */
	}
	spent = take_counts(b, calls, cpu, counted);
	own = greater(cpu - spent, LEAST_OWN * cpu);
	b->then = now;
	b->spent += spent;
	b->own += own;
	b->ran += own;
	take_rates(b, calls, greater(own, LEAST_CPU * seconds), seconds);
	free(calls);
	find_waiting(b);
	excess = spent - b->share * greater(own, LEAST_CPU * seconds);
	debt = b->debt + excess;
	b->debt = greater(debt, -b->share * CREDIT_SECONDS);
	if (excess > 0 && debt + excess * greater(LOOK_AHEAD / seconds, 1) > 0) {
		if (share_of_all(b) * own < spent / 2)
			take_all_rates(b);
		tighten(b, b->share * (debt > 0 ? AIM_IN_DEBT : AIM));
		shrink_group(b);
	} else if (has_credit(b)) {
		if (now - b->joined >= JOIN_SECONDS)
			let_in(b, own);
		if (now - b->relaxed >= RELAX_SECONDS) {
			b->relaxed = now;
			relax(b);
			put_back(b);
		}
	}
	b->ops.changed(b->ops.ctx);
}

void kx_budget_charge(struct kx_budget *b, double seconds, double put_in)
{
	b->untried += put_in;
	b->debt += seconds;
	b->spent += seconds;
	if (b->debt > 0)
		shrink_group(b);
}

bool kx_budget_waits(const struct kx_budget *b)
{
	return b->next < b->n;
}

void kx_budget_end(struct kx_budget *b, double now)
{
	for (size_t i = 0; i < b->n; i++) {
		struct kx_budget_function *f = &b->functions[i];

		if (f->level == KX_BUDGET_OUT)
			f->out_seconds += now - b->then;
		b->never_in += f->waits && !f->limited;
		f->limited |= f->waits;
	}
	b->then = now;
}

bool kx_budget_is_due(const struct kx_budget *b, double now, double spent)
{
	double seconds = now - b->then, excess = spent - b->share * seconds;

	if (seconds < LEAST_STEP)
		return false;
	return seconds >= (kx_budget_waits(b) && has_credit(b) ? JOIN_SECONDS : STEP_SECONDS) ||
	       (excess > 0 && b->debt + excess * LOOK_AHEAD / seconds > 0);
}
