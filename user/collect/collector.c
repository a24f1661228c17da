// SPDX-License-Identifier: BSD-2-Clause
/*
 * Order. A thread's records are in several rings, and within a ring they are in the order in which
 * slots were taken, not in order of time. But a record's clock is read after its slot is taken, so
 * a record whose slot is taken after some reading of the clock is younger than that reading. Each
 * pass therefore reads the clock (the watermark), then all heads, takes all records up to them, and
 * releases those older than the watermark. A ring that stops at an unfinished slot may hide older
 * records behind it: its limit is then the newest clock reading at which that slot was not yet
 * taken, and the watermark is the lowest limit of all rings. In the rings of a process that records itself, reading goes on behind
 * such a slot, which limits the watermark all the same: see target_reader.h.
 */
#include "collect/collector_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Beside the clock's known error; far above what CPUs differ by in reading it. */
#define SLACK_SECONDS 20e-6

/* How long after a thread's exit record calls in the kernel may still be its own. */
#define LINGER_SECONDS 0.2
/* Bounds the memory of threads without calls, against fork bombs. */
#define MAX_THREADS (1u << 18)
#define SWEEP_SECONDS 0.1
/* What waits between two passes is at most what is in the rings; of that so much memory is kept. */
#define MAX_IDLE (64u << 20)

/* Passes, about 1 ms apart, in which kx_collector_finish waits for an unfinished record. */
#define FINISH_PASSES 5000

static size_t idle_bytes(const struct kx_collector_input *in)
{
	size_t bytes = (size_t)in->rings->nslots * in->rings->ncpus * sizeof(struct kx_event);

	if (in->target.rings)
		bytes += (size_t)in->target.rings->nslots * in->target.rings->ncpus * sizeof(struct kx_event);
	return bytes < MAX_IDLE ? bytes : MAX_IDLE;
}

static uint64_t now_of(void *ctx)
{
	const struct kx_collector *c = ctx;

	return c->in.now(c->in.ctx);
}

static int add_set(struct kx_collector *c, struct kx_rings *rings, struct kx_target_reader *target)
{
	struct kx_ring_set *set = &c->sets[c->nsets++];

	*set = (struct kx_ring_set){ .rings = rings, .target = target };
	set->states = calloc(rings->ncpus, sizeof(*set->states));
	for (unsigned i = 0; set->states && i < rings->ncpus; i++)
		set->states[i] = (struct kx_ring_state){ .seen_head = rings->items[i].tail,
						      .limit = c->start_tsc };
	c->pending_max += (size_t)rings->nslots * rings->ncpus;
	return set->states ? 0 : -ENOMEM;
}

static int add_target(struct kx_collector *c, uint32_t ntraits)
{
	const struct kx_target_reader_options o = { .in = c->in.target,
						    .ntraits = ntraits,
						    .start_tsc = c->start_tsc,
						    .tsc_hz = c->in.clock->tsc_hz,
						    .slack = c->slack,
						    .now = now_of,
						    .records = kx_collector_records_of_target,
						    .ctx = c };
	int code;

	if (!o.in.rings)
		return 0;
	code = kx_target_reader_new(&o, &c->target);
	if (!code)
		code = kx_target_losses_init(&c->target_losses, &o.in);
	if (!code)
		code = add_set(c, o.in.rings, c->target);
	kx_pass_wait_init(&c->pass_wait, o.tsc_hz, o.in.rings->nslots, c->start_tsc);
	return code;
}

int kx_collector_new(const struct kx_collector_options *o, struct kx_collector **out,
		     struct kx_err *err)
{
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
		.idle_bytes = idle_bytes(&o->input),
		.delayed = o->input.delayed,
	};
	struct kx_collector *c = calloc(1, sizeof(*c));

	if (!c)
		return kx_err_set(err, -ENOMEM, "no memory for the collector");
	c->in = o->input;
	c->start_tsc = c->last_now = o->start_tsc;
	c->entries = o->calls;
	c->instruction_exits = o->instruction_exits;
	c->slack = (uint64_t)(hz * SLACK_SECONDS);
	c->sweep_every = (uint64_t)(hz * SWEEP_SECONDS);
	c->thread_options = threads;
	c->threads = kx_thread_table_new(&threads);
	if (!c->threads || add_set(c, o->input.rings, NULL) || add_target(c, o->ntraits)) {
		kx_collector_free(c);
		return kx_err_set(err, -ENOMEM, "no memory for the collector");
	}
	c->sink = kx_sink_to_threads(c->threads, o->writer);
	*out = c;
	return 0;
}

void kx_collector_free(struct kx_collector *c)
{
	if (!c)
		return;
	kx_thread_table_free(c->threads);
	kx_loss_totals_free(&c->losses);
	kx_target_reader_free(c->target);
	kx_target_losses_free(&c->target_losses);
	for (unsigned i = 0; i < c->nsets; i++)
		free(c->sets[i].states);
	free(c);
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
	int code;

	if (c->target)
		kx_thread_table_lost_from(c->threads, kx_target_reader_lost_after(c->target));
	code = kx_thread_table_release(c->threads, watermark, &c->calls, &c->migrations, &released);
	c->pending -= released < c->pending ? released : c->pending;
	return code ? explain(code, err) : 0;
}

static int pass(struct kx_collector *c, bool *drained, struct kx_err *err)
{
	uint64_t now = c->in.now(c->in.ctx), watermark = now, arrived = 0, slack;
	bool moved;

	kx_collector_take_losses(c);
	moved = kx_collector_read_heads(c);
	/* after the heads: a reading that is later than almost all records up to them */
	kx_clock_tick(c->in.clock);
	if (c->target) {
		kx_target_reader_begin(c->target, now, moved);
		arrived = kx_collector_arrived(c);
	}
	c->was_stopped = c->stopped;
	c->stopped = false;
	*drained = true;
	for (unsigned i = 0; i < c->nsets; i++) {
		int code = kx_collector_take_set(c, &c->sets[i], now, &watermark, drained);

		if (code)
			return explain(code, err);
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
	if (c->target) {
		uint64_t held = 0, waiting = kx_collector_waiting(c, &held);

		const bool quiet = !arrived && !waiting;
		const struct kx_pass_arrivals got = {
			.arrived = arrived, .waiting = waiting, .held = held, .runs = c->in.target_runs && c->in.target_runs(c->in.ctx, quiet)
		};

		kx_pass_wait_note(&c->pass_wait, now, &got);
	}
	return release(c, c->watermark, err);
}

int kx_collector_next_wait_ms(const struct kx_collector *c, int most)
{
	return c && c->target ? kx_pass_wait_ms(&c->pass_wait, most) : most;
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

	if (c->target)
		kx_target_reader_ending(c->target);
	for (int i = 0; i < FINISH_PASSES && !drained && !code; i++) {
		code = pass(c, &drained, err);
		if (!code && !drained)
			c->in.wait(c->in.ctx);
	}
	kx_collector_count_rest(c);
	kx_collector_take_losses(c);
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

