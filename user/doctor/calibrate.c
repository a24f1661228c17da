// SPDX-License-Identifier: BSD-2-Clause
#include "doctor/calibrate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "binary/modules.h"
#include "doctor/own_functions.h"

#define RING_BYTES (1u << 16)
#define ROUNDS	   4
#define CALLS	   16 /* of a function that does nothing, in each round */
#define WARM_CALLS 5  /* the kernel optimizes a nop5 at its first hit */
#define WARM_PAIRS 10
#define CODES	   3  /* kinds of entries that are probes in user space: KX_COST_NOP5 to _STEPPED */
#define FUNCTIONS  9

KX_OWN_FUNCTION(kx_idle_nop5, "	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n	ret\n");
KX_OWN_FUNCTION(kx_idle_push, "	push %rbp\n	pop %rbp\n	ret\n");
KX_OWN_FUNCTION(kx_idle_sub, "	sub $8, %rsp\n	add $8, %rsp\n	ret\n");
KX_OWN_FUNCTION(kx_idle_nop5_exit, "	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n	ret\n");
KX_OWN_FUNCTION(kx_idle_push_exit, "	push %rbp\n	pop %rbp\n	ret\n");
KX_OWN_FUNCTION(kx_idle_sub_exit, "	sub $8, %rsp\n	add $8, %rsp\n	ret\n");
KX_OWN_FUNCTION(kx_idle_push_tail, "	push %rbp\n	pop %rbp\n	jmp 1f\n	.balign 16\n1:	ret\n");
KX_OWN_FUNCTION(kx_pause_push, "	push %rbp\n	call kx_pause\n	pop %rbp\n	ret\n");
KX_OWN_FUNCTION(kx_pause_sub, "	sub $8, %rsp\n	call kx_pause\n	add $8, %rsp\n	ret\n");

/*
 * Three kinds with a return probe, in the order of their entries, and two that pause; the same kinds with a probed
 * exit, and one that leaves by a jump.
 */
static const struct idle {
	void (*call)(void);
	unsigned exit; /* offset of the probed exit; 0: a return probe */
	bool tail;
} idle[FUNCTIONS] = {
	{ .call = kx_idle_nop5 },
	{ .call = kx_idle_push },
	{ .call = kx_idle_sub },
	{ .call = kx_pause_push },
	{ .call = kx_pause_sub },
	{ .call = kx_idle_nop5_exit, .exit = 5 },
	{ .call = kx_idle_push_exit, .exit = 2 },
	{ .call = kx_idle_sub_exit, .exit = 8 },
	{ .call = kx_idle_push_tail, .exit = 2, .tail = true },
};

enum { OF_RETURN = 0, PAUSE_PUSH = CODES, PAUSE_SUB, OF_EXIT, TAIL = OF_EXIT + CODES };

/* By the probes of one call, in what the clock counts. */
struct taken {
	uint64_t offset, cost;
};

struct samples {
	uint64_t offsets[ROUNDS * CALLS], costs[ROUNDS * CALLS];
	size_t n;
};

enum { BEFORE_ENTRY, BEFORE_EXIT, SERIES };

/* What calls after a pause take more than others in the same round, by the place of the pause and its length. */
struct paused {
	struct samples more[SERIES][KX_PROBE_PAUSES];
};

static const unsigned pause_us[KX_PROBE_PAUSES] = { 10, 100, 1000 };

/*
 * All that is measured. The functions take turns, so that a change of the processor's speed affects all of them
 * alike.
 */
struct measured {
	struct samples idle[FUNCTIONS];
	struct paused paused[FUNCTIONS];
};

static bool is_pausing(unsigned i)
{
	return i == PAUSE_PUSH || i == PAUSE_SUB;
}

uint8_t kx_calibrate_kind(const struct kx_plan *plan)
{
	if (plan->entry.cost >= CODES)
		return 0;
	if (plan->exit_kind == KX_EXITS_RETURN)
		return (uint8_t)(1 + plan->entry.cost);
	return plan->exit_kind == KX_EXITS_INSTRUCTION ? (uint8_t)(1 + CODES + plan->entry.cost) : 0;
}

uint8_t kx_calibrate_nearest_kind(const struct kx_plan *plan)
{
	uint8_t kind = kx_calibrate_kind(plan);

	return kind || plan->entry.cost > KX_COST_STEPPED ? kind : (uint8_t)(1 + plan->entry.cost);
}

static int link_probes(struct kx_tracer *t, enum kx_tracer_prog prog, const struct kx_module *self,
		       unsigned from, unsigned to, uint64_t cookie, struct kx_links *links,
		       struct kx_err *err)
{
	struct kx_probe probes[FUNCTIONS];
	size_t n = 0;

	for (unsigned i = from; i < to; i++, n++) {
		uint64_t address = (uintptr_t)idle[i].call + (prog == KX_PROG_EXIT ? idle[i].exit : 0);

		probes[n] = (struct kx_probe){
			.offset = address - self->start + self->map_offset,
			.cookie = (i + 1) | cookie | (idle[i].tail ? KX_COOKIE_IS_TAIL : 0),
			.index = i,
		};
	}
	return kx_uprobe_link(kx_tracer_prog_mechanism(t, prog), kx_tracer_prog_fd(t, prog),
			      self->open_path, getpid(), prog == KX_PROG_RETURN, probes, n, links, NULL,
			      NULL, err);
}

static int attach(struct kx_tracer *t, unsigned nargs, struct kx_links *links, struct kx_err *err)
{
	bool session = kx_tracer_prog_mechanism(t, KX_PROG_RETURN) == KX_MECHANISM_SESSION;
	const uint64_t arguments = (uint64_t)nargs << 28;
	struct kx_modules mods;
	int code = kx_modules_of_process(getpid(), &mods, err);

	if (code)
		return code;
	code = link_probes(t, KX_PROG_EXIT, &mods.items[0], OF_EXIT, FUNCTIONS, 0, links, err);
	/* a session's program does both ends */
	if (!code)
		code = link_probes(t, KX_PROG_ENTRY, &mods.items[0], session ? OF_EXIT : OF_RETURN,
				   FUNCTIONS, arguments, links, err);
	if (!code)
		code = link_probes(t, KX_PROG_RETURN, &mods.items[0], OF_RETURN, OF_EXIT,
				   session ? arguments : 0, links, err);
	kx_modules_free(&mods);
	return code;
}

static int by_clock(const void *a, const void *b)
{
	const struct kx_wire_record *x = a, *y = b;

	return (x->clock > y->clock) - (x->clock < y->clock);
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

static struct taken median_of(struct samples *s)
{
	return (struct taken){ .offset = median(s->offsets, s->n), .cost = median(s->costs, s->n) };
}

/* The records of function @func, in order of time, at most @max; empties the rings. */
static size_t take_records(struct kx_rings *rings, uint32_t func, struct kx_wire_record *out,
			   size_t max)
{
	size_t n = 0;

	for (unsigned cpu = 0; cpu < rings->ncpus; cpu++) {
		struct kx_ring *ring = &rings->items[cpu];
		const struct kx_wire_record *rec;

		if (!ring->header)
			continue;
		while ((rec = kx_ring_take(rings, ring)))
			if (KX_EVENT_IS_CALL(rec->kind) && rec->func == func && n < max)
				out[n++] = *rec;
		kx_ring_release(ring);
	}
	qsort(out, n, sizeof(*out), by_clock);
	return n;
}

static int expect_records(size_t got, size_t want, struct kx_err *err)
{
	if (got == want)
		return 0;
	return kx_err_set(err, -EIO, "%zu calls of a function of kxray itself left %zu records", want / 2,
			  got);
}

static void add_sample(struct samples *s, uint64_t offset, uint64_t cost)
{
	s->offsets[s->n] = offset;
	s->costs[s->n++] = cost;
}

static int measure_idle(struct kx_rings *rings, unsigned i, struct samples *out, struct kx_err *err)
{
	struct kx_wire_record records[2 * (CALLS + 1)];
	int code;

	for (int call = 0; call < WARM_CALLS; call++)
		idle[i].call();
	take_records(rings, i + 1, records, 0);
	for (int call = 0; call <= CALLS; call++)
		idle[i].call();
	code = expect_records(take_records(rings, i + 1, records, 2 * (CALLS + 1)), 2 * (CALLS + 1), err);
	for (size_t r = 0; r < 2ul * CALLS && !code; r += 2)
		add_sample(out, records[r + 1].clock - records[r].clock,
			   records[r + 2].clock - records[r].clock);
	return code;
}

/*
 * After a pause the probes' code and data have left the caches, so they take longer. Each pair of calls is one that
 * returns at once, after a pause outside of it, and then one that pauses itself: of the first one the entry comes
 * after the pause, of the second one the exit.
 */

static uint64_t now(const struct kx_clock *clock)
{
	struct timespec t;

	if (clock->kind == KX_CLOCK_KFUNC)
		return __rdtsc();
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct {
	const struct kx_clock *clock;
	uint64_t length, took; /* in what the clock counts */
} pause_of;

/* Lasts for pause_of.length. It uses no memory: what a traced program's own data drives out is not the probes'. */
static __attribute__((used, noinline)) void kx_pause(void)
{
	uint64_t begin = now(pause_of.clock);

	do
		pause_of.took = now(pause_of.clock) - begin;
	while (pause_of.took < pause_of.length);
}

/* What the probes of one call that lasts for @length take. */
static int measure_call(struct kx_rings *rings, unsigned i, uint64_t length, struct taken *out,
			struct kx_err *err)
{
	struct kx_wire_record records[2];
	uint64_t begin = now(pause_of.clock);
	int code;

	pause_of.length = length;
	idle[i].call();
	out->cost = now(pause_of.clock) - begin - pause_of.took;
	code = expect_records(take_records(rings, i + 1, records, 2), 2, err);
	if (!code)
		out->offset = records[1].clock - records[0].clock - pause_of.took;
	return code;
}

/* Two calls with pauses of @length: before the entry of the first and before the exit of the second. */
static int measure_pair(struct kx_rings *rings, unsigned i, uint64_t length, struct taken out[SERIES],
			struct kx_err *err)
{
	int code;

	pause_of.length = length;
	kx_pause();
	code = measure_call(rings, i, 0, &out[BEFORE_ENTRY], err);
	return code ? code : measure_call(rings, i, length, &out[BEFORE_EXIT], err);
}

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static int measure_pauses(struct kx_rings *rings, unsigned i, struct paused *out, struct kx_err *err)
{
	uint64_t us = pause_of.clock->kind == KX_CLOCK_KFUNC ? pause_of.clock->tsc_hz / 1000000 : 1000;
	struct taken pair[SERIES], warm[SERIES];
	struct samples without[SERIES];
	int code = 0;

	without[BEFORE_ENTRY].n = without[BEFORE_EXIT].n = 0;
	for (unsigned n = 0; n < WARM_PAIRS && !code; n++) {
		code = measure_pair(rings, i, 0, pair, err);
		for (unsigned s = 0; s < SERIES && !code; s++)
			add_sample(&without[s], pair[s].offset, pair[s].cost);
	}
	for (unsigned s = 0; s < SERIES && !code; s++)
		warm[s] = median_of(&without[s]);
	for (unsigned p = 1; p < KX_PROBE_PAUSES && !code; p++) {
		code = measure_pair(rings, i, pause_us[p] * us, pair, err);
		for (unsigned s = 0; s < SERIES && !code; s++)
			add_sample(&out->more[s][p], difference(pair[s].offset, warm[s].offset),
				   difference(pair[s].cost, warm[s].cost));
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

static void fill_pauses(struct samples more[KX_PROBE_PAUSES], const struct kx_clock *clock,
			struct kx_pause_cost *out)
{
	for (unsigned p = 1; p < KX_PROBE_PAUSES; p++) {
		struct taken t = median_of(&more[p]);

		out->offset[p] = to_ticks(clock, t.offset);
		out->cost[p] = to_ticks(clock, t.cost > t.offset ? t.cost : t.offset);
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
	for (unsigned k = 0; k < 2 * CODES; k++) {
		unsigned i = k % CODES == KX_COST_STEPPED ? PAUSE_SUB : PAUSE_PUSH;

		fill_pauses(m->paused[i].more[BEFORE_ENTRY], clock, &out->kinds[k + 1].entry_pause);
		fill_pauses(m->paused[i].more[BEFORE_EXIT], clock, &out->kinds[k + 1].exit_pause);
	}
}

/* A call that leaves by a jump saves what single-stepping the return instruction takes. */
static void fill_kinds(struct measured *m, const struct kx_clock *clock, struct kx_probe_costs *out)
{
	struct taken of[FUNCTIONS];
	uint64_t saved;

	for (unsigned i = 0; i < FUNCTIONS; i++)
		if (!is_pausing(i))
			of[i] = median_of(&m->idle[i]);
	saved = difference(of[OF_EXIT + KX_COST_EMULATED].cost, of[TAIL].cost);
	out->nkinds = 1 + 2 * CODES;
	for (unsigned k = 0; k < 2 * CODES; k++) {
		bool returns = k < CODES;
		const struct taken *t = &of[returns ? OF_RETURN + k : OF_EXIT + k - CODES];
		uint64_t tail = !returns && t->cost - t->offset > saved ? t->cost - saved : t->cost;

		out->kinds[k + 1] = (struct kx_probe_cost){
			.entry = kx_cost_name((enum kx_cost)(k % CODES)),
			.exit = kx_exits_name(returns ? KX_EXITS_RETURN : KX_EXITS_INSTRUCTION),
			.offset = to_ticks(clock, t->offset),
			.cost = to_ticks(clock, t->cost),
			.tail_cost = to_ticks(clock, tail),
		};
	}
}

/* @pauses: calls after pauses are measured, too. */
static int measure(struct kx_rings *rings, bool pauses, struct measured *out, struct kx_err *err)
{
	int code = 0;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < FUNCTIONS && !code; i++) {
			if (!is_pausing(i))
				code = measure_idle(rings, i, &out->idle[i], err);
			else if (pauses)
				code = measure_pauses(rings, i, &out->paused[i], err);
		}
	return code;
}

/* What a call takes that is only counted: it leaves no record. */
static uint64_t measure_counted(const struct kx_clock *clock, unsigned i)
{
	uint64_t took[ROUNDS], begin;

	for (int call = 0; call < WARM_CALLS; call++)
		idle[i].call();
	for (unsigned round = 0; round < ROUNDS; round++) {
		begin = now(clock);
		for (int call = 0; call < CALLS; call++)
			idle[i].call();
		took[round] = now(clock) - begin;
	}
	return median(took, ROUNDS) / CALLS;
}

static void measure_all_counted(struct kx_tracer *t, const struct kx_clock *clock,
				struct kx_probe_costs *out)
{
	for (uint32_t id = 1; id <= FUNCTIONS; id++)
		kx_tracer_set_level(t, id, KX_BUDGET_NONE);
	for (unsigned k = 0; k < 2 * CODES; k++)
		out->kinds[k + 1].counted =
			to_ticks(clock, measure_counted(clock, k < CODES ? OF_RETURN + k : OF_EXIT + k - CODES));
}

int kx_calibrate(const struct kx_tracer_options *session, struct kx_clock *clock,
		 struct kx_probe_costs *out, struct kx_links *links, struct kx_err *err)
{
	pid_t self = getpid();
	const struct kx_tracer_options options = {
		.mechanism = session->mechanism,
		.borrowed_clock = clock,
		.ring_bytes = RING_BYTES,
		.pids = &self,
		.npids = 1,
		.callers = session->callers,
		.nargs = session->nargs,
		.max_depth = session->max_depth,
		.min_duration_ns = session->min_duration_ns ? 1 : 0,
		.budget_functions = session->budget_functions ? FUNCTIONS : 0,
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
	pause_of.clock = clock;
	code = attach(t, session->nargs, links, err);
	kx_tracer_ready(t, true);
	if (!code)
		code = measure(kx_tracer_rings(t), pauses, m, err);
	if (!code)
		fill_kinds(m, clock, out);
	if (!code && session->budget_functions)
		measure_all_counted(t, clock, out);
	kx_tracer_ready(t, false);
	if (!code && pauses)
		fill_all_pauses(m, clock, out);
	kx_tracer_free(t);
	free(m);
	return code;
}
