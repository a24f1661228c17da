// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared by the files of the collector: one pass after the other and the end (collector.c), records out of the rings (collector_rings.c), losses
 * and counts (collector_losses.c).
 */
#ifndef KX_COLLECTOR_INTERNAL_H
#define KX_COLLECTOR_INTERNAL_H

#include "collect/collector.h"
#include "collect/loss_totals.h"
#include "collect/pass_wait.h"
#include "collect/record_sink.h"
#include "collect/target_losses.h"

struct kx_ring_state {
	uint64_t head, seen_head; /* head at this pass, at the previous one */
	uint64_t limit; /* TSC: records that were not read yet are younger */
};

/* Rings with the same writers, one a CPU. */
struct kx_ring_set {
	struct kx_rings *rings;
	struct kx_ring_state *states;	 /* by CPU */
	struct kx_target_reader *target; /* NULL: BPF programs write them */
};

#define KX_RING_SETS 2

struct kx_collector {
	struct kx_collector_input in;
	struct kx_record_sink sink;
	struct kx_thread_table *threads;
	struct kx_thread_options thread_options;
	struct kx_ring_set sets[KX_RING_SETS]; /* the first: of the BPF programs */
	unsigned nsets;
	struct kx_target_reader *target; /* NULL: no process records itself; */
	struct kx_target_losses target_losses;
	struct kx_pass_wait pass_wait; /* and how often to look at its rings */
	uint64_t start_tsc, slack, last_now;
	uint64_t sweep_every, swept; /* ticks between sweeps; TSC of the last one */
	uint64_t watermark;	     /* TSC: all older records have been taken out */
	uint64_t closed_tsc; /* 0: the gate is open */
	uint64_t losses_seen[KX_LOSS_SOURCES];
	struct kx_loss_totals losses; /* by thread */
	size_t pending, pending_max; /* records taken out and not yet released */
	bool stopped, was_stopped;   /* a ring stops at an unfinished slot: now, last pass */
	uint64_t abandoned;	     /* call records that were never finished */
	uint64_t taken;		     /* call records taken out of the rings */
	uint64_t *entries;	     /* of them entries, by function id; or NULL */
	uint64_t *instruction_exits; /* and exits that probes at instructions have seen; or NULL */
	uint64_t written;	     /* hits in the files before the present one */
	bool rotated;		     /* there are such files */
	struct kx_callstack_counts calls;
	uint64_t migrations;
	int failed;
};

/* collector_rings.c */

/* Reads the heads of all rings; whether any has moved since the last pass. */
bool kx_collector_read_heads(struct kx_collector *c);
/* Takes records of all rings of @set; *@watermark, *@drained: lowered to what holds for them, too. */
int kx_collector_take_set(struct kx_collector *c, const struct kx_ring_set *set, uint64_t now, uint64_t *watermark,
			  bool *drained);
/* Of the target's rings. Before the pass takes records: how many the fullest one got since the last pass; after it: how many are
 * left, and how many slots of the fullest the writers do not have back (*@held). */
uint64_t kx_collector_arrived(const struct kx_collector *c);
uint64_t kx_collector_waiting(const struct kx_collector *c, uint64_t *held);
/* Takes records of a target's ring; an options.records of the reader, @ctx the collector. */
int kx_collector_records_of_target(void *ctx, unsigned cpu, const struct kx_wire_record *records, uint32_t n);
/* Records that are left after an error, or behind an unfinished slot, are only counted. */
void kx_collector_count_rest(struct kx_collector *c);

/* collector_losses.c: new losses become gaps of their threads. An error is in c->failed. */
void kx_collector_take_losses(struct kx_collector *c);

#endif
