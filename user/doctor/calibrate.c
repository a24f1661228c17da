// SPDX-License-Identifier: BSD-2-Clause
#include "doctor/calibrate.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "doctor/own_calls.h"

#define RING_BYTES (1u << 16)
#define ROUNDS	    8
#define CALLS	    8 /* of a function that does nothing, in each round */
#define WARM_CALLS  5 /* the kernel optimizes a nop5 at its first hit */
#define WARM_SERIES 7
#define AGAIN_WARM  2
#define AGAIN_CHEAP 7
#define AGAIN_STEPPED 5
#define AGAIN_LONG  3 /* what a cheap probe takes after 1 ms differs by 1 us from call to call */
#define CODES	    3 /* kinds of entries that are probes in user space: KX_COST_NOP5 to _STEPPED */

struct samples {
	uint64_t offsets[ROUNDS * CALLS], costs[ROUNDS * CALLS];
	size_t n;
};

/* What calls after a pause take more than others in the same round, by their place in the series and its length. */
struct paused {
	struct samples more[KX_OWN_SERIES][KX_PROBE_PAUSES];
};

static const unsigned pause_us[KX_PROBE_PAUSES] = { 10, 100, 1000 };

/*
 * All that is measured. The functions take turns, so that a change of the processor's speed affects all of them
 * alike.
 */
struct measured {
	struct samples idle[KX_OWN_CALLS];
	struct paused paused[KX_OWN_CALLS];
};

static bool is_pausing(unsigned i)
{
	return i == KX_OWN_PAUSE_PUSH || i == KX_OWN_PAUSE_SUB;
}

/* By what sees the exits: return probes, probes on return instructions, on jumps. */
enum { RETURNS, INSTRUCTIONS, JUMPS, EXIT_KINDS };

static uint8_t kind_of(unsigned exits, const struct kx_plan *plan)
{
	return plan->entry.cost < CODES ? (uint8_t)(1 + exits * CODES + plan->entry.cost) : 0;
}

static unsigned at_instructions(const struct kx_plan *plan)
{
	return plan->exits_emulated ? JUMPS : INSTRUCTIONS;
}

uint8_t kx_calibrate_kind(const struct kx_plan *plan)
{
	if (plan->exit_kind == KX_EXITS_RETURN)
		return kind_of(RETURNS, plan);
	return plan->exit_kind == KX_EXITS_INSTRUCTION ? kind_of(at_instructions(plan), plan) : 0;
}

uint8_t kx_calibrate_moved_kind(const struct kx_plan *plan)
{
	return plan->exit_kind == KX_EXITS_RETURN ? kind_of(at_instructions(plan), plan) : 0;
}

uint8_t kx_calibrate_nearest_kind(const struct kx_plan *plan)
{
	uint8_t kind = kx_calibrate_kind(plan);

	return kind || plan->entry.cost > KX_COST_STEPPED ? kind : (uint8_t)(1 + plan->entry.cost);
}

bool kx_calibrate_steps(uint8_t kind)
{
	return kind && ((kind - 1) % CODES == KX_COST_STEPPED || (kind - 1) / CODES == INSTRUCTIONS);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The lower one of two: what is subtracted by mistake makes short calls vanish. */
static uint64_t median(uint64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[(n - 1) / 2];
}

static struct kx_own_taken median_of(struct samples *s)
{
	return (struct kx_own_taken){ .offset = median(s->offsets, s->n), .cost = median(s->costs, s->n) };
}

static void add_sample(struct samples *s, const struct kx_own_taken *taken)
{
	s->offsets[s->n] = taken->offset;
	s->costs[s->n++] = taken->cost;
}

static int measure_idle(struct kx_tracer *t, unsigned i, struct samples *out, struct kx_err *err)
{
	struct kx_own_taken taken[CALLS];
	int code = kx_own_calls_idle(t, i, WARM_CALLS, CALLS, taken, err);

	for (unsigned call = 0; call < CALLS && !code; call++)
		add_sample(out, &taken[call]);
	return code;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static struct kx_own_taken difference_of(struct kx_own_taken a, struct kx_own_taken b)
{
	return (struct kx_own_taken){ difference(a.offset, b.offset), difference(a.cost, b.cost) };
}

static int measure_pauses(struct kx_tracer *t, unsigned i, struct paused *out, struct kx_err *err)
{
	const struct kx_clock *clock = kx_tracer_clock(t);
	uint64_t us = clock->kind == KX_CLOCK_KFUNC ? clock->tsc_hz / 1000000 : 1000;
	struct kx_own_taken series[KX_OWN_SERIES + KX_OWN_AGAIN_MAX], warm[KX_OWN_SERIES];
	struct samples without[KX_OWN_SERIES];
	int code = 0;

	for (unsigned s = 0; s < KX_OWN_SERIES; s++)
		without[s].n = 0;
	for (unsigned n = 0; n < WARM_SERIES && !code; n++) {
		code = kx_own_calls_pause(t, i, 0, 0, series, err);
		for (unsigned s = 0; s < KX_OWN_SERIES && !code; s++)
			add_sample(&without[s], &series[s]);
	}
	for (unsigned s = 0; s < KX_OWN_SERIES && !code; s++)
		warm[s] = median_of(&without[s]);
	for (unsigned p = 1; p < KX_PROBE_PAUSES && !code; p++) {
		unsigned again = i == KX_OWN_PAUSE_PUSH && p == KX_PROBE_PAUSES - 1 ? AGAIN_LONG : 0;

		code = kx_own_calls_pause(t, i, pause_us[p] * us, again, series, err);
		for (unsigned n = 0; n < KX_OWN_SERIES + again && !code; n++) {
			unsigned s = n < KX_OWN_SERIES ? n : KX_OWN_BEFORE_BOTH;

			series[n] = difference_of(series[n], warm[s]);
			add_sample(&out->more[s][p], &series[n]);
		}
	}
	return code;
}

static uint32_t to_ticks(const struct kx_clock *clock, uint64_t raw)
{
	double ticks = (double)raw;

	if (clock->kind != KX_CLOCK_KFUNC)
		ticks *= (double)clock->tsc_hz * 1e-9;
	return ticks < UINT32_MAX ? (uint32_t)(ticks + 0.5) : 0;
}

static void fill_pause(struct kx_own_taken more, const struct kx_clock *clock, unsigned p,
		       struct kx_pause_cost *out)
{
	out->offset[p] = to_ticks(clock, more.offset);
	out->cost[p] = to_ticks(clock, more.cost > more.offset ? more.cost : more.offset);
}

/* Two of which the second is never the smaller one, unless by chance: then both are their mean, by their numbers of samples. */
static void in_order(uint64_t *first, size_t nfirst, uint64_t *second, size_t nsecond)
{
	if (*second < *first)
		*first = *second = (*first * nfirst + *second * nsecond) / (nfirst + nsecond);
}

static void fill_pauses(struct paused *m, const struct kx_clock *clock, struct kx_probe_cost *out)
{
	for (unsigned p = 1; p < KX_PROBE_PAUSES; p++) {
		struct samples *exits = &m->more[KX_OWN_BEFORE_EXIT][p], *both = &m->more[KX_OWN_BEFORE_BOTH][p];
		struct kx_own_taken at_exit = median_of(exits), at_both = median_of(both);

		in_order(&at_exit.offset, exits->n, &at_both.offset, both->n);
		in_order(&at_exit.cost, exits->n, &at_both.cost, both->n);
		fill_pause(median_of(&m->more[KX_OWN_BEFORE_ENTRY][p]), clock, p, &out->entry_pause);
		fill_pause(at_exit, clock, p, &out->exit_pause);
		fill_pause(difference_of(at_both, at_exit), clock, p, &out->reentry_pause);
	}
}

/*
 * Measured with return probes only, for the sake of a short start: the offsets of probed exits differ little, their
 * costs are larger.
 */
static void fill_all_pauses(struct measured *m, const struct kx_clock *clock, struct kx_probe_costs *out)
{
	for (unsigned p = 0; p < KX_PROBE_PAUSES; p++)
		out->pauses[p] = (uint32_t)(clock->tsc_hz / 1000000 * pause_us[p]);
	for (unsigned k = 0; k < EXIT_KINDS * CODES; k++)
		fill_pauses(&m->paused[k % CODES == KX_COST_STEPPED ? KX_OWN_PAUSE_SUB : KX_OWN_PAUSE_PUSH],
			    clock, &out->kinds[k + 1]);
}

/* The function whose calls are measured for the kind @k + 1. */
static unsigned own_call_of(unsigned k)
{
	return k < CODES ? KX_OWN_RETURN + k : KX_OWN_EXIT + k % CODES;
}

/* A call that leaves by a jump saves what single-stepping the return instruction takes. */
static void fill_kinds(struct measured *m, const struct kx_clock *clock, struct kx_probe_costs *out)
{
	struct kx_own_taken of[KX_OWN_CALLS];
	uint64_t saved;

	for (unsigned i = 0; i < KX_OWN_CALLS; i++)
		if (!is_pausing(i))
			of[i] = median_of(&m->idle[i]);
	saved = difference(of[KX_OWN_EXIT + KX_COST_EMULATED].cost, of[KX_OWN_TAIL].cost);
	out->nkinds = 1 + EXIT_KINDS * CODES;
	for (unsigned k = 0; k < EXIT_KINDS * CODES; k++) {
		const unsigned exits = k / CODES;
		const struct kx_own_taken *t = &of[own_call_of(k)];
		uint64_t tail = exits != RETURNS && t->cost - t->offset > saved ? t->cost - saved : t->cost;

		out->kinds[k + 1] = (struct kx_probe_cost){
			.entry = kx_cost_name((enum kx_cost)(k % CODES)),
			.exit = exits == JUMPS ? "jump" :
				kx_exits_name(exits == RETURNS ? KX_EXITS_RETURN : KX_EXITS_INSTRUCTION),
			.offset = to_ticks(clock, t->offset),
			.cost = to_ticks(clock, exits == JUMPS ? tail : t->cost),
			.tail_cost = to_ticks(clock, tail),
		};
	}
}

/* @pauses: calls after pauses are measured, too. */
static int measure(struct kx_tracer *t, bool pauses, struct measured *out, struct kx_err *err)
{
	int code = 0;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < KX_OWN_CALLS && !code; i++) {
			if (!is_pausing(i))
				code = measure_idle(t, i, &out->idle[i], err);
			else if (pauses)
				code = measure_pauses(t, i, &out->paused[i], err);
		}
	return code;
}

/* What a call takes that is only counted: it leaves no record. */
static uint64_t measure_counted(const struct kx_clock *clock, unsigned i)
{
	uint64_t took[ROUNDS], begin;

	for (int call = 0; call < WARM_CALLS; call++)
		kx_own_call(i);
	for (unsigned round = 0; round < ROUNDS; round++) {
		begin = kx_own_calls_now(clock);
		for (int call = 0; call < CALLS; call++)
			kx_own_call(i);
		took[round] = kx_own_calls_now(clock) - begin;
	}
	return median(took, ROUNDS) / CALLS;
}

static void measure_all_counted(struct kx_tracer *t, const struct kx_clock *clock,
				struct kx_probe_costs *out)
{
	uint64_t took[KX_OWN_CALLS], saved;

	for (uint32_t id = 1; id <= KX_OWN_CALLS; id++)
		kx_tracer_set_level(t, id, KX_BUDGET_NONE);
	for (unsigned k = 0; k < KX_OWN_CALLS; k++)
		took[k] = is_pausing(k) ? 0 : measure_counted(clock, k);
	saved = difference(took[KX_OWN_EXIT + KX_COST_EMULATED], took[KX_OWN_TAIL]);
	for (unsigned k = 0; k < EXIT_KINDS * CODES; k++) {
		const uint64_t counted = took[own_call_of(k)];

		out->kinds[k + 1].counted = to_ticks(clock, k / CODES == JUMPS ? difference(counted, saved) : counted);
	}
}

struct kx_calibration {
	struct kx_tracer *tracer;
	uint64_t cheap, stepped; /* costs, in what the clock counts */
};

static const unsigned cheap_call = KX_OWN_RETURN + KX_COST_EMULATED, stepped_call = KX_OWN_RETURN + KX_COST_STEPPED;

/* Takes over @t, unless memory runs out. */
static void keep(struct kx_tracer *t, struct measured *m, struct kx_calibration **out)
{
	*out = malloc(sizeof(**out));
	if (!*out) {
		kx_tracer_free(t);
		return;
	}
	**out = (struct kx_calibration){ .tracer = t,
					 .cheap = median_of(&m->idle[cheap_call]).cost,
					 .stepped = median_of(&m->idle[stepped_call]).cost };
	for (uint32_t id = 1; id <= KX_OWN_CALLS; id++)
		kx_tracer_set_level(t, id, 0);
}

int kx_calibrate(const struct kx_tracer_options *session, struct kx_clock *clock,
		 struct kx_probe_costs *out, struct kx_calibration **kept, struct kx_links *links,
		 struct kx_err *err)
{
	const pid_t self[] = { getpid(), getpid() };
	/* each hit looks its process up as in the recording, but for filters, which kxray does not pass */
	const struct kx_tracer_options options = {
		.mechanism = session->mechanism,
		.borrowed_clock = clock,
		.ring_bytes = RING_BYTES,
		.pids = self,
		.npids = session->npids > 1 ? 2 : 1,
		.follow = session->follow,
		.own_probes = session->own_probes,
		.callers = session->callers,
		.nargs = session->nargs,
		.results = session->results,
		.max_depth = session->max_depth,
		.min_duration_ns = session->min_duration_ns ? 1 : 0,
		.budget_functions = session->budget_functions ? KX_OWN_CALLS : 0,
		.probes_only = true,
		.general = !kx_tracer_is_plain(session),
	};
	/* a record that is not written leaves a pause in the trace that was none */
	const bool pauses = !session->max_depth && !session->min_duration_ns;
	struct measured *m = calloc(1, sizeof(*m));
	struct kx_tracer *t = NULL;
	int code = m ? kx_tracer_new(&options, &t, err) : kx_err_set(err, -ENOMEM, "out of memory");

	if (code) {
		free(m);
		return code;
	}
	if (session->follow)
		kx_tracer_checked(t, getpid(), 1, false); /* returns are harmless */
	code = kx_own_calls_attach(t, session->nargs, links, err);
	kx_tracer_ready(t, true);
	if (!code)
		code = measure(t, pauses, m, err);
	if (!code)
		fill_kinds(m, clock, out);
	if (!code && session->budget_functions)
		measure_all_counted(t, clock, out);
	kx_tracer_ready(t, false);
	if (!code && pauses)
		fill_all_pauses(m, clock, out);
	if (!code && kept)
		keep(t, m, kept);
	else
		kx_tracer_free(t);
	free(m);
	return code;
}

/* In thousandths of @before. */
static uint32_t scale(uint64_t cost, uint64_t before)
{
	uint64_t scale = before ? (cost * KX_PROBE_SCALE_ONE + before / 2) / before : KX_PROBE_SCALE_ONE;

	return scale < KX_PROBE_SCALE_MOST ? (uint32_t)scale : KX_PROBE_SCALE_MOST;
}

static int median_cost(struct kx_tracer *t, unsigned i, size_t n, uint64_t *out)
{
	struct kx_own_taken taken[KX_OWN_IDLE_MAX];
	uint64_t costs[KX_OWN_IDLE_MAX];
	struct kx_err err;
	int code = kx_own_calls_idle(t, i, AGAIN_WARM, n, taken, &err);

	for (size_t call = 0; call < n && !code; call++)
		costs[call] = taken[call].cost;
	*out = code ? 0 : median(costs, n);
	return code;
}

int kx_calibrate_again(struct kx_calibration *c, struct kx_probe_scale *out)
{
	uint64_t cheap, stepped;
	int code;

	kx_tracer_ready(c->tracer, true);
	code = median_cost(c->tracer, cheap_call, AGAIN_CHEAP, &cheap);
	out->tsc = kx_tsc_read();
	if (!code)
		code = median_cost(c->tracer, stepped_call, AGAIN_STEPPED, &stepped);
	kx_tracer_ready(c->tracer, false);
	if (code)
		return code;
	out->cheap = scale(cheap, c->cheap);
	out->stepped = scale(stepped, c->stepped);
	return 0;
}

void kx_calibration_free(struct kx_calibration *c)
{
	if (c)
		kx_tracer_free(c->tracer);
	free(c);
}
