// SPDX-License-Identifier: BSD-2-Clause
/* Records out of the rings, up to the heads at the beginning of a pass, and how far that limits the watermark. */
#include "collect/collector_internal.h"

#include <errno.h>

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

/* @tsc stands for the record's clock. */
static int put_record(struct kx_collector *c, unsigned ring_cpu, const struct kx_wire_record *rec, uint64_t tsc,
		      const uint64_t *payload)
{
	bool at_instruction = (rec->kind == KX_EVENT_EXIT || rec->kind == KX_EVENT_TAIL_EXIT) &&
			      rec->func & KX_FUNC_AT_INSTRUCTION;
	struct kx_wire_record plain;
	int code;

	if (at_instruction) {
		plain = *rec;
		plain.func &= ~KX_FUNC_AT_INSTRUCTION;
		rec = &plain;
	}
	code = c->sink.record(&c->sink, ring_cpu, rec, tsc < c->start_tsc ? c->start_tsc : tsc, payload);
	if (code < 0)
		return code;
	c->pending += (size_t)code;
	count_call(c, rec, at_instruction);
	return 0;
}

/* The reader has checked that functions are below ntraits. */
static void count_calls(struct kx_collector *c, const struct kx_wire_record *records, uint32_t n)
{
	c->taken += n;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t func = records[i].func & ~KX_FUNC_AT_INSTRUCTION;

		if (records[i].kind == KX_EVENT_ENTRY) {
			if (c->entries)
				c->entries[func]++;
		} else if (c->instruction_exits && func != records[i].func) {
			c->instruction_exits[func]++;
		}
	}
}

int kx_collector_records_of_target(void *ctx, unsigned cpu, const struct kx_wire_record *records, uint32_t n)
{
	struct kx_collector *c = ctx;
	const int code = c->sink.calls(&c->sink, cpu, records, n, c->start_tsc);

	if (code < 0)
		return code;
	c->pending += (size_t)code;
	count_calls(c, records, n);
	return 0;
}

static int take_record(struct kx_collector *c, unsigned ring_cpu, const struct kx_ring *ring,
		       const struct kx_wire_record *rec)
{
	uint64_t payload[KX_WIRE_MAX_WORDS];

	for (unsigned i = 0; i < rec->words && i < KX_WIRE_MAX_WORDS; i++)
		payload[i] = kx_ring_payload(c->in.rings, ring, ring->tail, i);
	return put_record(c, ring_cpu, rec, kx_clock_to_tsc(c->in.clock, rec->clock), payload);
}

/* Takes records out up to @head. */
static int take_ring(struct kx_collector *c, unsigned cpu, struct kx_ring *ring, uint64_t head)
{
	const struct kx_rings *rings = c->in.rings;
	uint64_t given_back = ring->tail;

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
	return 0;
}

/* The same of a target's ring; *@read, *@stuck: see kx_target_reader_take. */
static int take_target_ring(struct kx_collector *c, unsigned cpu, const struct kx_ring_state *state, uint64_t *read,
			    uint64_t *stuck)
{
	const struct kx_target_pass pass = {
		.head = state->head,
		.seen_head = state->seen_head,
		.last_now = c->last_now,
		.limit = state->limit,
		.most = !c->was_stopped		       ? UINT64_MAX
			: c->pending < c->pending_max ? c->pending_max - c->pending
						      : 0,
	};
	int code = kx_target_reader_take(c->target, cpu, &pass, read, stuck);

	c->stopped |= *stuck != UINT64_MAX;
	return code;
}

int kx_collector_take_set(struct kx_collector *c, const struct kx_ring_set *set, uint64_t now, uint64_t *watermark,
			  bool *drained)
{
	for (unsigned cpu = 0; cpu < set->rings->ncpus; cpu++) {
		struct kx_ring *ring = &set->rings->items[cpu];
		struct kx_ring_state *state = &set->states[cpu];
		uint64_t read = 0, stuck = UINT64_MAX, limit;
		int code;

		if (!ring->header)
			continue;
		if (set->target) {
			code = take_target_ring(c, cpu, state, &read, &stuck);
		} else {
			code = take_ring(c, cpu, ring, state->head);
			read = ring->tail;
		}
		if (code)
			return code;
		if (read == state->head)
			state->limit = now;
		else if (read >= state->seen_head)
			state->limit = c->last_now; /* the slot was taken after the last pass began */
		state->seen_head = state->head;
		*drained &= read == state->head && stuck == UINT64_MAX;
		limit = stuck < state->limit ? stuck : state->limit;
		if (limit < *watermark)
			*watermark = limit;
	}
	return 0;
}

bool kx_collector_read_heads(struct kx_collector *c)
{
	bool moved = false;

	for (struct kx_ring_set *set = c->sets; set < c->sets + c->nsets; set++) {
		for (unsigned cpu = 0; cpu < set->rings->ncpus; cpu++) {
			struct kx_ring_state *state = &set->states[cpu];

			if (!set->rings->items[cpu].header)
				continue;
			state->head = set->target ? kx_target_reader_head(set->target, cpu)
						  : kx_ring_head(&set->rings->items[cpu]);
			moved |= state->head != state->seen_head;
		}
	}
	return moved;
}

uint64_t kx_collector_arrived(const struct kx_collector *c)
{
	const struct kx_ring_set *set = &c->sets[c->nsets - 1];
	uint64_t most = 0;

	for (unsigned cpu = 0; c->target && cpu < set->rings->ncpus; cpu++) {
		uint64_t n = set->states[cpu].head - set->states[cpu].seen_head;

		most = n > most ? n : most;
	}
	return most;
}

uint64_t kx_collector_waiting(const struct kx_collector *c, uint64_t *held)
{
	const struct kx_ring_set *set = &c->sets[c->nsets - 1];
	uint64_t most = 0;

	for (unsigned cpu = 0; c->target && cpu < set->rings->ncpus; cpu++) {
		const struct kx_ring *ring = &set->rings->items[cpu];
		uint64_t head, n;

		if (!ring->header)
			continue;
		head = kx_target_reader_head(set->target, cpu);
		n = head - set->states[cpu].seen_head;
		most = n > most ? n : most;
		n = head - ring->tail;
		*held = n > *held ? n : *held;
	}
	return most;
}

void kx_collector_count_rest(struct kx_collector *c)
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
	if (c->target)
		c->taken += kx_target_reader_count_rest(c->target);
}
