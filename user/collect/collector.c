// SPDX-License-Identifier: BSD-2-Clause
/*
 * Order. A thread's records are in several rings, and within a ring they are in the order in which
 * slots were taken, not in order of time. But a record's clock is read after its slot is taken, so
 * a record whose slot is taken after some reading of the clock is younger than that reading. Each
 * pass therefore reads the clock (the watermark), then all heads, takes all records up to them, and
 * releases those older than the watermark. A ring that stops at an unfinished slot may hide older
 * records behind it: its limit is then the newest clock reading at which that slot was not yet
 * taken, and the watermark is the lowest limit of all rings.
 */
#include "collect/collector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/pair_map.h"
#include "collect/record_sink.h"

/* Beside the clock's known error; far above what CPUs differ by in reading it. */
#define SLACK_SECONDS 20e-6

/* How long after a thread's exit record calls in the kernel may still be its own. */
#define LINGER_SECONDS 0.2
/* Bounds the memory of threads without calls, against fork bombs. */
#define MAX_THREADS (1u << 18)
#define SWEEP_SECONDS 0.1

/* Passes, about 1 ms apart, in which kx_collector_finish waits for an unfinished record. */
#define FINISH_PASSES 5000

struct ring_state {
	uint64_t head, seen_head; /* head at this pass, at the previous one */
	uint64_t limit;	    /* TSC: all older records have been taken out */
};

struct kx_collector {
	struct kx_collector_input in;
	struct kx_record_sink sink;
	struct kx_thread_table *threads;
	struct kx_thread_options thread_options;
	struct ring_state *rings; /* by CPU */
	uint64_t start_tsc, slack, last_now;
	uint64_t sweep_every, swept; /* ticks between sweeps; TSC of the last one */
	uint64_t watermark;	     /* TSC: all older records have been taken out */
	uint64_t closed_tsc; /* 0: the gate is open */
	uint64_t losses_seen;
	size_t pending, pending_max; /* records taken out and not yet released */
	bool stopped, was_stopped;   /* a ring stops at an unfinished slot: now, last pass */
	uint64_t abandoned;	     /* call records that were never finished */
	struct kx_pair_map lossy;    /* threads that have lost hits, */
	uint64_t *losses_read;	     /* and how many, by index in lossy */
	size_t losses_room;
	uint64_t taken;		     /* call records taken out of the rings */
	uint64_t *entries;	     /* of them entries, by function id; or NULL */
	uint64_t *instruction_exits; /* and exits that probes at instructions have seen; or NULL */
	uint64_t written;	     /* hits in the files before the present one */
	bool rotated;		     /* there are such files */
	struct kx_callstack_counts calls;
	uint64_t migrations;
	int failed;
};

int kx_collector_new(const struct kx_collector_options *o, struct kx_collector **out,
		     struct kx_err *err)
{
	const struct kx_rings *rings = o->input.rings;
	const double hz = (double)o->input.clock->tsc_hz;
	const struct kx_thread_options threads = {
		.writer = o->writer,
		.traits = o->traits,
		.ntraits = o->ntraits,
		.processes = o->processes,
		.session_note = o->session_note,
		.callers = o->callers,
		.linger = (uint64_t)(hz * LINGER_SECONDS),
		.max_threads = MAX_THREADS,
		.delayed = o->input.delayed,
	};
	struct kx_collector *c = calloc(1, sizeof(*c));

	if (!c)
		return kx_err_set(err, -ENOMEM, "no memory for the collector");
	c->in = o->input;
	c->start_tsc = o->start_tsc;
	c->entries = o->calls;
	c->instruction_exits = o->instruction_exits;
	c->slack = (uint64_t)(hz * SLACK_SECONDS);
	c->sweep_every = (uint64_t)(hz * SWEEP_SECONDS);
	c->pending_max = (size_t)rings->nslots * rings->ncpus;
	c->rings = calloc(rings->ncpus, sizeof(*c->rings));
	c->thread_options = threads;
	c->threads = kx_thread_table_new(&threads);
	if (!c->rings || !c->threads) {
		kx_collector_free(c);
		return kx_err_set(err, -ENOMEM, "no memory for the collector");
	}
	c->sink = kx_sink_to_threads(c->threads, o->writer);
	for (unsigned i = 0; i < rings->ncpus; i++)
		c->rings[i].limit = o->start_tsc;
	c->last_now = o->start_tsc;
	*out = c;
	return 0;
}

void kx_collector_free(struct kx_collector *c)
{
	if (!c)
		return;
	kx_thread_table_free(c->threads);
	kx_pair_map_free(&c->lossy);
	free(c->losses_read);
	free(c->rings);
	free(c);
}

static void count_call(struct kx_collector *c, const struct kx_wire_record *rec, bool at_instruction)
{
	uint32_t func = rec->func;

	c->taken += KX_EVENT_IS_CALL(rec->kind);
	if (KX_EVENT_IS_CALL(rec->kind))
		func &= ~KX_FUNC_FLAGS;
	if (func >= c->thread_options.ntraits)
		return;
	if (rec->kind == KX_EVENT_ENTRY && c->entries)
		c->entries[func]++;
	if (at_instruction && c->instruction_exits)
		c->instruction_exits[func]++;
}

static int take_record(struct kx_collector *c, unsigned ring_cpu, const struct kx_ring *ring,
		       const struct kx_wire_record *rec)
{
	bool at_instruction = (rec->kind == KX_EVENT_EXIT || rec->kind == KX_EVENT_TAIL_EXIT) &&
			      rec->func & KX_FUNC_AT_INSTRUCTION;
	uint64_t payload[KX_WIRE_MAX_WORDS], tsc;
	struct kx_wire_record plain;
	int code;

	if (at_instruction) {
		plain = *rec;
		plain.func &= ~KX_FUNC_AT_INSTRUCTION;
		rec = &plain;
	}
	tsc = kx_clock_to_tsc(c->in.clock, rec->clock);
	if (tsc < c->start_tsc)
		tsc = c->start_tsc;
	for (unsigned i = 0; i < rec->words && i < KX_WIRE_MAX_WORDS; i++)
		payload[i] = kx_ring_payload(c->in.rings, ring, ring->tail, i);
	code = c->sink.record(&c->sink, ring_cpu, rec, tsc, payload);
	if (code < 0)
		return code;
	c->pending += (size_t)code;
	count_call(c, rec, at_instruction);
	return 0;
}

/* Takes records out up to @head; *@whole: all of them were finished. */
static int take_ring(struct kx_collector *c, unsigned cpu, struct kx_ring *ring, uint64_t head,
		     bool *whole)
{
	const struct kx_rings *rings = c->in.rings;
	uint64_t given_back = ring->tail;

	*whole = false;
	while (ring->tail != head) {
		const struct kx_wire_record *rec;
		int err;

		rec = kx_ring_peek(rings, ring, ring->tail);
		if (!rec) {
			c->stopped = true;
			break;
		}
		/* While nothing can be released, let the rings fill up rather than the memory. */
		if (c->was_stopped && c->pending >= c->pending_max)
			break;
		err = take_record(c, cpu, ring, rec);
		if (err)
			return err;
		ring->tail += KX_WIRE_SLOTS(rec->words);
		/* returns slots to the writers while the pass continues */
		if (ring->tail - given_back >= rings->nslots / 16) {
			kx_ring_release(ring);
			given_back = ring->tail;
		}
	}
	kx_ring_release(ring);
	*whole = ring->tail == head;
	return 0;
}

/* Where the number of lost hits of thread @tid that were read before is kept; NULL: no memory. */
static uint64_t *losses_read(struct kx_collector *c, uint32_t tid)
{
	uint32_t index;
	int is_new;

	if (KX_ARRAY_RESERVE(c->losses_read, c->losses_room, c->lossy.count))
		return NULL;
	is_new = kx_pair_index(&c->lossy, tid, 0, &index);
	if (is_new < 0)
		return NULL;
	if (is_new)
		c->losses_read[index] = 0;
	return &c->losses_read[index];
}

static void note_loss(void *ctx, uint32_t tid, const struct kx_thread_loss *loss)
{
	struct kx_collector *c = ctx;
	uint64_t to = kx_clock_to_tsc(c->in.clock, loss->last_clock), from, *read;
	int code = -ENOMEM;

	read = losses_read(c, tid);
	if (read) {
		/* A hidden loss was not there yet when the pass before this one began. */
		from = loss->first_total > *read ? c->last_now
						 : kx_clock_to_tsc(c->in.clock, loss->first_clock);
		*read = loss->entries + loss->exits;
		code = c->sink.loss(&c->sink, tid, loss->entries, loss->exits, from < to ? from : to, to,
				    (uint16_t)loss->last_cpu);
	}
	if (code)
		c->failed = code;
}

static uint64_t sum(const uint64_t *values, size_t n)
{
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += values[i];
	return total;
}

static void take_losses(struct kx_collector *c)
{
	uint64_t calls[KX_LOSS_REASONS], other[KX_LOSS_REASONS], total;

	c->in.losses(c->in.ctx, calls, other);
	total = sum(calls, KX_LOSS_REASONS);
	if (total == c->losses_seen)
		return;
	c->losses_seen = total;
	c->in.thread_losses(c->in.ctx, note_loss, c);
}

/* The writer reports errno; here it becomes a message. */
static int explain(int code, struct kx_err *err)
{
	if (code == -ENOMEM)
		return kx_err_set(err, code, "no memory for the records of all threads");
	return kx_err_set(err, code,
			  "the trace file cannot be written: %s; what was written before is whole "
			  "and readable",
			  strerror(-code));
}

static int release(struct kx_collector *c, uint64_t watermark, struct kx_err *err)
{
	size_t released = 0;
	int code = kx_thread_table_release(c->threads, watermark, &c->calls, &c->migrations,
					   &released);

	c->pending -= released < c->pending ? released : c->pending;
	return code ? explain(code, err) : 0;
}

static int pass(struct kx_collector *c, bool *drained, struct kx_err *err)
{
	struct kx_rings *rings = c->in.rings;
	uint64_t now = c->in.now(c->in.ctx), watermark = now, slack;

	take_losses(c);
	for (unsigned cpu = 0; cpu < rings->ncpus; cpu++)
		if (rings->items[cpu].header)
			c->rings[cpu].head = kx_ring_head(&rings->items[cpu]);
	/* after the heads: a reading that is later than almost all records up to them */
	kx_clock_tick(c->in.clock);
	c->was_stopped = c->stopped;
	c->stopped = false;
	*drained = true;
	for (unsigned cpu = 0; cpu < rings->ncpus; cpu++) {
		struct kx_ring *ring = &rings->items[cpu];
		struct ring_state *state = &c->rings[cpu];
		bool whole;
		int code;

		if (!ring->header)
			continue;
		code = take_ring(c, cpu, ring, state->head, &whole);
		if (code)
			return explain(code, err);
		if (whole)
			state->limit = now;
		else if (ring->tail >= state->seen_head)
			state->limit =
				c->last_now; /* the slot was taken after the last pass began */
		state->seen_head = state->head;
		*drained &= whole;
		if (state->limit < watermark)
			watermark = state->limit;
	}
	c->last_now = now;
	slack = c->slack + c->in.clock->error;
	c->watermark = watermark > slack ? watermark - slack : 0;
	if (c->failed)
		return explain(c->failed, err);
	if (now - c->swept > c->sweep_every) {
		c->swept = now;
		if (kx_thread_table_sweep(c->threads))
			return explain(-ENOMEM, err);
	}
	return release(c, c->watermark, err);
}

void kx_collector_keep_in(struct kx_collector *c, struct kx_flight_store *store)
{
	c->sink = kx_sink_to_store(store, c->threads);
}

struct kx_thread_options kx_collector_dump_options(const struct kx_collector *c)
{
	struct kx_thread_options options = c->thread_options;

	options.patient = true;
	options.look_up = kx_thread_table_identity;
	options.look_up_ctx = c->threads;
	options.max_threads = 0;
	return options;
}

uint64_t kx_collector_watermark(const struct kx_collector *c)
{
	return c->watermark;
}

int kx_collector_pass(struct kx_collector *c, struct kx_err *err)
{
	bool drained;

	return pass(c, &drained, err);
}

uint64_t kx_collector_oldest(const struct kx_collector *c)
{
	return kx_thread_table_oldest(c->threads, c->watermark);
}

int kx_collector_switch(struct kx_collector *c, struct kx_fdr_writer *writer, uint64_t *continued,
			struct kx_err *err)
{
	int code = kx_thread_table_switch(c->threads, writer, c->watermark, continued);

	c->written += kx_fdr_writer_hits(c->sink.writer);
	c->sink.writer = c->thread_options.writer = writer;
	c->rotated = true;
	return code ? explain(code, err) : 0;
}

/* Records that are left after an error, or behind an unfinished slot, are only counted. */
static void count_rest(struct kx_collector *c)
{
	struct kx_rings *rings = c->in.rings;

	for (unsigned cpu = 0; cpu < rings->ncpus; cpu++) {
		struct kx_ring *ring = &rings->items[cpu];
		const struct kx_wire_record *rec;

		if (!ring->header)
			continue;
		while ((rec = kx_ring_take(rings, ring)))
			c->taken += KX_EVENT_IS_CALL(rec->kind);
		c->abandoned += kx_ring_head(ring) - ring->tail;
		kx_ring_release(ring);
	}
}

int kx_collector_put(struct kx_collector *c, const struct kx_wire_record *rec, const uint64_t *payload)
{
	int code = c->sink.record(&c->sink, 0, rec, c->in.now(c->in.ctx), payload);

	c->pending += code > 0 ? (size_t)code : 0;
	return code < 0 ? code : 0;
}

void kx_collector_close(struct kx_collector *c)
{
	c->closed_tsc = c->in.now(c->in.ctx);
}

int kx_collector_finish(struct kx_collector *c, struct kx_err *err)
{
	bool drained = false;
	int code = 0;

	for (int i = 0; i < FINISH_PASSES && !drained && !code; i++) {
		code = pass(c, &drained, err);
		if (!code && !drained)
			c->in.wait(c->in.ctx);
	}
	count_rest(c);
	take_losses(c);
	if (!code && c->failed)
		code = explain(c->failed, err);
	if (!code)
		code = release(c, UINT64_MAX, err);
	if (!code && kx_thread_table_end_gone(c->threads))
		code = explain(-ENOMEM, err);
	if (!code)
		code = release(c, UINT64_MAX, err);
	if (code)
		return code;
	code = kx_thread_table_end_sched(c->threads, c->closed_tsc ? c->closed_tsc : c->last_now);
	return code ? explain(code, err) : 0;
}

void kx_collector_get_counts(const struct kx_collector *c, struct kx_collector_counts *out)
{
	uint64_t other[KX_LOSS_REASONS], kept;

	memset(out, 0, sizeof(*out));
	c->in.losses(c->in.ctx, out->lost_by, other);
	out->lost_by[KX_LOSS_RING_BUSY] += c->abandoned;
	out->lost_partner = c->calls.orphans_of_loss;
	c->sink.count(&c->sink, c->taken, &out->events, &out->threads);
	out->events += c->written;
	if (c->rotated)
		out->threads = kx_thread_table_written(c->threads);
	kept = out->events + c->calls.orphans + c->calls.orphans_of_loss;
	out->lost_unwritten = c->taken > kept ? c->taken - kept : 0;
	out->lost = sum(out->lost_by, KX_LOSS_REASONS) + out->lost_partner + out->lost_unwritten;
	out->lost_migrations = sum(other, KX_LOSS_REASONS);
	out->entries = c->calls.entries;
	out->exits = c->calls.exits;
	out->repaired = c->calls.repaired;
	out->orphans = c->calls.orphans;
	c->in.reduced(c->in.ctx, &out->reduced, &out->too_deep);
	if (c->in.conditions)
		c->in.conditions(c->in.ctx, out->conditions);
	out->migrations = c->migrations;
	out->unnamed = kx_thread_table_unnamed(c->threads);
}
