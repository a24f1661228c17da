// SPDX-License-Identifier: BSD-2-Clause
#include "doctor/calibrate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "binary/modules.h"
#include "doctor/own_functions.h"

#define RING_BYTES (1u << 16)
#define CALLS	   150
#define WARM_CALLS 10 /* the kernel optimizes a nop5 at its first hit */
#define CODES	   3  /* kinds of entries that are probes in user space: KX_COST_NOP5 to _STEPPED */
#define FUNCTIONS  7

KX_OWN_FUNCTION(kx_idle_nop5, "	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n	ret\n");
KX_OWN_FUNCTION(kx_idle_push, "	push %rbp\n	pop %rbp\n	ret\n");
KX_OWN_FUNCTION(kx_idle_sub, "	sub $8, %rsp\n	add $8, %rsp\n	ret\n");
KX_OWN_FUNCTION(kx_idle_nop5_exit, "	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n	ret\n");
KX_OWN_FUNCTION(kx_idle_push_exit, "	push %rbp\n	pop %rbp\n	ret\n");
KX_OWN_FUNCTION(kx_idle_sub_exit, "	sub $8, %rsp\n	add $8, %rsp\n	ret\n");
KX_OWN_FUNCTION(kx_idle_push_tail, "	push %rbp\n	pop %rbp\n	jmp 1f\n	.balign 16\n1:	ret\n");

/* In the order of kx_calibrate_kind: by entry, then by exit; last, one that leaves by a jump. */
static const struct idle {
	void (*call)(void);
	unsigned exit; /* offset of the probed exit; 0: a return probe */
	bool tail;
} idle[FUNCTIONS] = {
	{ .call = kx_idle_nop5 },
	{ .call = kx_idle_push },
	{ .call = kx_idle_sub },
	{ .call = kx_idle_nop5_exit, .exit = 5 },
	{ .call = kx_idle_push_exit, .exit = 2 },
	{ .call = kx_idle_sub_exit, .exit = 8 },
	{ .call = kx_idle_push_tail, .exit = 2, .tail = true },
};

enum { OF_RETURN = 0, OF_EXIT = CODES, TAIL = 2 * CODES };

/* Medians of one function, in what the clock counts. */
struct measured {
	uint64_t offset, cost;
};

uint8_t kx_calibrate_kind(const struct kx_plan *plan)
{
	if (plan->entry.cost >= CODES)
		return 0;
	if (plan->exit_kind == KX_EXITS_RETURN)
		return (uint8_t)(1 + OF_RETURN + plan->entry.cost);
	return plan->exit_kind == KX_EXITS_INSTRUCTION ? (uint8_t)(1 + OF_EXIT + plan->entry.cost) : 0;
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

static uint64_t median(uint64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
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

static int measure(struct kx_rings *rings, unsigned i, struct measured *out, struct kx_err *err)
{
	struct kx_wire_record records[2 * CALLS];
	uint64_t offsets[CALLS], costs[CALLS - 1];
	size_t n;

	for (int call = 0; call < WARM_CALLS; call++)
		idle[i].call();
	take_records(rings, i + 1, records, 2 * CALLS);
	for (int call = 0; call < CALLS; call++)
		idle[i].call();
	n = take_records(rings, i + 1, records, 2 * CALLS);
	if (n != 2 * CALLS)
		return kx_err_set(err, -EIO, "%d calls of a function of kxray itself left %zu records", CALLS,
				  n);
	for (size_t call = 0; call < CALLS; call++)
		offsets[call] = records[2 * call + 1].clock - records[2 * call].clock;
	for (size_t call = 0; call < CALLS - 1; call++)
		costs[call] = records[2 * call + 2].clock - records[2 * call].clock;
	out->offset = median(offsets, CALLS);
	out->cost = median(costs, CALLS - 1);
	return 0;
}

static uint32_t to_ticks(const struct kx_clock *clock, uint64_t raw)
{
	double ticks = (double)raw;

	if (clock->kind != KX_CLOCK_KFUNC)
		ticks *= (double)clock->tsc_hz * 1e-9;
	return ticks < UINT32_MAX ? (uint32_t)(ticks + 0.5) : 0;
}

/* A call that leaves by a jump saves what single-stepping the return instruction takes. */
static void fill_kinds(const struct measured m[FUNCTIONS], const struct kx_clock *clock,
		       struct kx_probe_costs *out)
{
	uint64_t ret = m[OF_EXIT + KX_COST_EMULATED].cost, jump = m[TAIL].cost;
	uint64_t saved = ret > jump ? ret - jump : 0;

	out->nkinds = 1 + 2 * CODES;
	for (unsigned i = 0; i < 2 * CODES; i++) {
		uint64_t tail = i >= OF_EXIT && m[i].cost - m[i].offset > saved ? m[i].cost - saved :
										 m[i].cost;

		out->kinds[i + 1] = (struct kx_probe_cost){
			.entry = kx_cost_name((enum kx_cost)(i % CODES)),
			.exit = kx_exits_name(i < OF_EXIT ? KX_EXITS_RETURN : KX_EXITS_INSTRUCTION),
			.offset = to_ticks(clock, m[i].offset),
			.cost = to_ticks(clock, m[i].cost),
			.tail_cost = to_ticks(clock, tail),
		};
	}
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
		.probes_only = true,
	};
	struct measured m[FUNCTIONS];
	struct kx_tracer *t = NULL;
	int code = kx_tracer_new(&options, &t, err);

	if (code)
		return code;
	code = attach(t, session->nargs, links, err);
	kx_tracer_ready(t, true);
	for (unsigned i = 0; i < FUNCTIONS && !code; i++)
		code = measure(kx_tracer_rings(t), i, &m[i], err);
	kx_tracer_ready(t, false);
	if (!code)
		fill_kinds(m, clock, out);
	kx_tracer_free(t);
	return code;
}
