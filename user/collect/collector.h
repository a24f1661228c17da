// SPDX-License-Identifier: BSD-2-Clause
/*
 * The collector: takes records out of the rings, puts each thread's into the
 * order of time, balances its calls and hands them to the FDR writer.
 */
#ifndef KX_COLLECTOR_H
#define KX_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/callstack.h"
#include "base/err.h"
#include "trace/fdr_writer.h"
#include "collect/flight_store.h"
#include "collect/process_table.h"
#include "tracer/tracer.h"

struct kx_collector;

struct kx_collector_counts {
	uint64_t events;   /* function entries and exits in the file that were probe hits */
	uint64_t entries;
	uint64_t exits;
	uint64_t repaired; /* exits that kxray added to close a call */
	uint64_t reduced;  /* hits that --depth and --min-duration left out */
	uint64_t too_deep; /* entries among them: nested deeper than can be followed */
	uint64_t orphans;  /* exits left out: the call began before the recording */
	uint64_t lost;     /* hits that are not in the file, for any reason below */
	uint64_t lost_by[KX_LOSS_REASONS];
	uint64_t lost_unwritten;  /* taken out of the rings, but the file could not be written */
	uint64_t lost_partner;    /* exits left out because their entry was lost */
	uint64_t lost_missed;     /* hits inside the kernel that it did not pass on; it counts
				   * those of other processes too. Set by the recording. */
	uint64_t lost_migrations; /* not function hits: CPU changes and thread records */
	uint64_t migrations;
	uint64_t threads;
	uint64_t unnamed; /* records of threads' names and ends left out: too many threads at a time */
};

/*
 * @traits: per function id, see callstack.h; borrowed, as are @tracer, @writer, @processes and
 * @session_note (see thread_table.h). @start_tsc: no event is older. Errors: -ENOMEM.
 */
int kx_collector_new(struct kx_tracer *tracer, struct kx_fdr_writer *writer, const uint8_t *traits,
		     uint32_t ntraits, struct kx_process_table *processes, uint64_t start_tsc,
		     const char *session_note, struct kx_collector **out, struct kx_err *err);
void kx_collector_free(struct kx_collector *c);

/*
 * From now on records are kept in @store (borrowed) instead of being written: a flight recorder.
 * The counts then tell what came, not what is in a file.
 */
void kx_collector_keep_in(struct kx_collector *c, struct kx_flight_store *store);

/* How a dump's threads are: as ours. For a child, while nothing is collected. */
struct kx_thread_options kx_collector_dump_options(const struct kx_collector *c);

/* TSC: every record that is older has been taken out of the rings. */
uint64_t kx_collector_watermark(const struct kx_collector *c);

/*
 * One pass over the rings: takes all records out, and releases to the threads' streams what no
 * later record can precede. Errors: the FDR writer's, -ENOMEM.
 */
int kx_collector_pass(struct kx_collector *c, struct kx_err *err);

/* The gate has just been closed: what does not end before does not end in this recording. */
void kx_collector_close(struct kx_collector *c);

/* After all probes are detached: drains the rings to the end and releases everything. */
int kx_collector_finish(struct kx_collector *c, struct kx_err *err);

/*
 * hits = events + lost + orphans + reduced holds once the recording is finished and the writer has flushed or
 * failed.
 */
void kx_collector_get_counts(const struct kx_collector *c, struct kx_collector_counts *out);

#endif
