// SPDX-License-Identifier: BSD-2-Clause
/*
 * The collector: takes records out of the per-CPU rings and writes each thread's as one balanced
 * stream in order of time.
 *
 * Why a watermark: a thread runs on many CPUs, so its records are in several rings, and only a
 * bound that holds for all rings shows that nothing older can still arrive. Each pass reads the
 * clock, empties the rings, and releases what is older than that reading (the argument is in
 * collector.c). Waiting events are sorted per thread, not over all: threads are independent streams
 * of the trace, and a thread's events are nearly in order already.
 *
 * The way of a record:
 *     ring -> collector.c (watermark) -> record_sink.c -> thread_table.c (waits) -> thread_stream.c
 *     (order, start and end of threads) -> callstack.c (balance) -> thread_sink.c -> FDR writer
 * or, with a flight recorder, from record_sink.c into flight_store.c, and from there the rest of
 * the way when flight_dump.c writes a dump. event.c has the table of kinds. Records that a process has written itself come through
 * target_reader.c, which believes nothing.
 *
 * Cost: about 25 ns of one CPU for a call's record, ring to file, 18 of a process that records itself (build/tests/collect_rate), plus 32
 * bytes of memory for each record that waits, normally the records of one pass (some ms). Calls that need no repair, and records without
 * payload, take a shorter way, many at once: kx_record_sink.calls, kx_callstack_simple_calls, kx_fdr_calls.
 */
#ifndef KX_COLLECTOR_H
#define KX_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "collect/flight_store.h"
#include "collect/process_table.h"
#include "collect/target_reader.h"
#include "collect/thread_table.h"
#include "trace/fdr_writer.h"
#include "tracer/clock.h"
#include "tracer/ring.h"

struct kx_collector;

struct kx_collector_counts {
	uint64_t events;   /* function entries and exits in the file that were probe hits */
	uint64_t entries;
	uint64_t exits;
	uint64_t repaired; /* exits that kxray added to close a call */
	uint64_t reduced;  /* calls that --depth and --min-duration left out */
	uint64_t too_deep; /* of these: nested deeper than can be followed */
	uint64_t conditions[KX_CONDITION_COUNTS]; /* calls of functions that have a condition */
	uint64_t orphans;  /* exits left out: the call began before the recording */
	uint64_t lost;     /* hits that are not in the file, for any reason below */
	uint64_t lost_by[KX_LOSS_REASONS];
	uint64_t lost_unwritten;  /* taken out of the rings, but the file could not be written */
	uint64_t lost_partner;    /* exits left out because their entry was lost */
	uint64_t lost_invalid;	  /* records that a traced process wrote itself and that cannot be true */
	uint64_t lost_missed;     /* hits inside the kernel that it did not pass on; it counts
				   * those of other processes too. Set by the recording. */
	unsigned target_damaged;  /* rings of it that were given up: it has overwritten their heads */
	uint64_t lost_migrations; /* not function hits: CPU changes and thread records */
	uint64_t migrations;
	uint64_t threads;
	uint64_t unnamed; /* records of threads' names and ends left out: too many threads at a time */
};

typedef void kx_thread_loss_fn(void *ctx, uint32_t tid, const struct kx_thread_loss *loss);

/* Where records come from: a tracer (tracer_input.h), or rings in memory. All borrowed. */
struct kx_collector_input {
	struct kx_rings *rings;	       /* that BPF programs write */
	struct kx_target_input target; /* and those of a process that records itself (--in-process), if any; see target_reader.h */
	struct kx_clock *clock;
	bool delayed; /* see struct kx_thread_options */
	/* TSC. A record whose slot is taken later has a younger clock. */
	uint64_t (*now)(void *ctx);
	/* Sleeps for about 1 ms: at the end, between passes over an unfinished slot. */
	void (*wait)(void *ctx);
	/* Running totals of lost hits by reason; @other: of all other records. */
	void (*losses)(void *ctx, uint64_t calls[KX_LOSS_REASONS], uint64_t other[KX_LOSS_REASONS]);
	/* Calls @each with the running totals of every thread that has lost hits. */
	void (*thread_losses)(void *ctx, kx_thread_loss_fn *each, void *each_ctx);
	/* Calls left out by --depth and --min-duration; @too_deep: those too deep to follow. */
	void (*reduced)(void *ctx, uint64_t *calls, uint64_t *too_deep);
	/*
	 * Whether the process that fills rings itself has had a CPU since the last call. @wake: if not, whoever waits for the next pass is
	 * woken when it has one. NULL: that is not known.
	 */
	bool (*target_runs)(void *ctx, bool wake);
	/* Calls by enum kx_condition_count; NULL: there are no conditions. */
	void (*conditions)(void *ctx, uint64_t counts[KX_CONDITION_COUNTS]);
	void *ctx;
};

struct kx_collector_options {
	struct kx_collector_input input;
	struct kx_fdr_writer *writer; /* pointers are borrowed */
	const uint8_t *traits;	      /* per function id, see callstack.h */
	uint32_t ntraits;
	uint64_t *calls; /* adds the recorded entries of each function, by id below ntraits; or NULL */
	uint64_t *instruction_exits; /* the same: exits that were not seen by return probes */
	struct kx_process_table *processes;
	uint64_t start_tsc;	  /* older records are moved up to it */
	const char *session_note; /* see thread_table.h */
	struct kx_caller_set *callers; /* likewise */
};

/* Errors: -ENOMEM. */
int kx_collector_new(const struct kx_collector_options *options, struct kx_collector **out,
		     struct kx_err *err);
void kx_collector_free(struct kx_collector *c);

/*
 * A flight recorder: from now on records are kept in @store (borrowed) instead of being written,
 * and the counts are of records taken, not of those in a file. Call it before the first pass.
 */
void kx_collector_keep_in(struct kx_collector *c, struct kx_flight_store *store);

/*
 * Thread options for a dump of the store; they borrow from @c. For a forked child, or while no pass
 * is under way.
 */
struct kx_thread_options kx_collector_dump_options(const struct kx_collector *c);

/* TSC: every older record has been taken out of the rings. */
uint64_t kx_collector_watermark(const struct kx_collector *c);

/*
 * One pass over the rings: takes all finished records out and releases those older than the
 * watermark to the threads' streams. Errors: the FDR writer's, -ENOMEM.
 */
int kx_collector_pass(struct kx_collector *c, struct kx_err *err);

/*
 * How long to wait for the next pass, ms: @most, or less where a process fills rings of its own, which wake nobody (pass_wait.h). @c may be
 * NULL.
 */
int kx_collector_next_wait_ms(const struct kx_collector *c, int most);

/*
 * A rotated trace: the time at which the next file begins (TSC), and the change to its writer
 * (borrowed); see kx_thread_table_oldest and _switch. After it the old writer has all its records and
 * is to be finished. Errors: the FDR writers', -ENOMEM; @writer is the present one even then.
 */
uint64_t kx_collector_oldest(const struct kx_collector *c);
int kx_collector_switch(struct kx_collector *c, struct kx_fdr_writer *writer, uint64_t *continued,
			struct kx_err *err);

/*
 * Adds a record that is not from the rings, at the present time; its clock is ignored. @payload: rec->words words. Errors:
 * -ENOMEM.
 */
int kx_collector_put(struct kx_collector *c, const struct kx_wire_record *rec, const uint64_t *payload);

/* The gate has just been closed: what is open at this time ends at it. */
void kx_collector_close(struct kx_collector *c);

/*
 * After all probes are detached: drains the rings and releases everything. A record that stays
 * unfinished for 5 s is counted as lost. Errors as kx_collector_pass.
 */
int kx_collector_finish(struct kx_collector *c, struct kx_err *err);

/*
 * Once the recording is finished and the writer has flushed or failed, hits = events + lost +
 * orphans, but for the hits of reduced calls. Of a rotated trace: of all files together; lost_unwritten holds only at the end.
 */
void kx_collector_get_counts(const struct kx_collector *c, struct kx_collector_counts *out);

#endif
