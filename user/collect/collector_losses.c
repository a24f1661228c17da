// SPDX-License-Identifier: BSD-2-Clause
/* Losses become gaps of their threads; and what all of it came to. */
#include "collect/collector_internal.h"

#include <string.h>

static void put_loss(struct kx_collector *c, enum kx_loss_source source, uint32_t tid,
		     const struct kx_thread_loss *loss, uint64_t first, uint64_t last)
{
	struct kx_loss_sum sum;
	int code = kx_loss_totals_put(&c->losses, source, tid, loss, &sum);

	/* A hidden loss was not there yet when the pass before this one began. */
	if (!code && sum.hidden)
		first = c->last_now;
	if (!code)
		code = c->sink.loss(&c->sink, tid, sum.entries, sum.exits, first < last ? first : last, last,
				    (uint16_t)loss->last_cpu);
	if (code)
		c->failed = code;
}

static void note_loss(void *ctx, uint32_t tid, const struct kx_thread_loss *loss)
{
	struct kx_collector *c = ctx;

	put_loss(c, KX_LOSSES_OF_KERNEL, tid, loss, kx_clock_to_tsc(c->in.clock, loss->first_clock),
		 kx_clock_to_tsc(c->in.clock, loss->last_clock));
}

/* Any of it may be made up. */
static void note_loss_of_target(void *ctx, uint32_t tid, const struct kx_thread_loss *loss)
{
	struct kx_collector *c = ctx;
	const uint64_t now = c->in.now(c->in.ctx), last = loss->last_clock < now ? loss->last_clock : now;
	struct kx_thread_loss checked = *loss;

	if (!kx_target_reader_has_thread(c->target, tid))
		return;
	if (checked.last_cpu >= c->in.target.rings->ncpus)
		checked.last_cpu = 0;
	put_loss(c, KX_LOSSES_OF_TARGET, tid, &checked,
		 loss->first_clock > c->start_tsc ? loss->first_clock : c->start_tsc,
		 last > c->start_tsc ? last : c->start_tsc);
}

static uint64_t sum(const uint64_t *values, size_t n)
{
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += values[i];
	return total;
}

/* Whether the totals of a source have changed since they were last seen. */
static bool has_lost(struct kx_collector *c, enum kx_loss_source source, const uint64_t calls[KX_LOSS_REASONS])
{
	uint64_t total = sum(calls, KX_LOSS_REASONS), before = c->losses_seen[source];

	c->losses_seen[source] = total;
	return total != before;
}

void kx_collector_take_losses(struct kx_collector *c)
{
	uint64_t calls[KX_LOSS_REASONS], other[KX_LOSS_REASONS], targets[KX_LOSS_REASONS] = { 0 };

	c->in.losses(c->in.ctx, calls, other);
	if (has_lost(c, KX_LOSSES_OF_KERNEL, calls))
		c->in.thread_losses(c->in.ctx, note_loss, c);
	if (!c->target)
		return;
	kx_target_losses_add(&c->target_losses, targets);
	if (has_lost(c, KX_LOSSES_OF_TARGET, targets))
		kx_target_losses_threads(&c->target_losses, note_loss_of_target, c);
}

/* What a process that records itself has lost, beside what BPF programs have. */
static void add_target_counts(const struct kx_collector *c, struct kx_collector_counts *out)
{
	struct kx_target_losses losses = c->target_losses;
	struct kx_target_reader_counts counts;

	if (!c->target)
		return;
	kx_target_losses_add(&losses, out->lost_by);
	kx_target_reader_get_counts(c->target, &counts);
	out->lost_by[KX_LOSS_RING_BUSY] += counts.given_up;
	out->lost_invalid = counts.invalid;
	out->target_damaged = counts.damaged;
}

void kx_collector_get_counts(const struct kx_collector *c, struct kx_collector_counts *out)
{
	uint64_t other[KX_LOSS_REASONS], kept;

	memset(out, 0, sizeof(*out));
	c->in.losses(c->in.ctx, out->lost_by, other);
	out->lost_by[KX_LOSS_RING_BUSY] += c->abandoned;
	add_target_counts(c, out);
	out->lost_partner = c->calls.orphans_of_loss;
	c->sink.count(&c->sink, c->taken, &out->events, &out->threads);
	out->events += c->written;
	if (c->rotated)
		out->threads = kx_thread_table_written(c->threads);
	kept = out->events + c->calls.orphans + c->calls.orphans_of_loss;
	out->lost_unwritten = c->taken > kept ? c->taken - kept : 0;
	out->lost = sum(out->lost_by, KX_LOSS_REASONS) + out->lost_partner + out->lost_unwritten +
		    out->lost_invalid;
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
