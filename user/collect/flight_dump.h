// SPDX-License-Identifier: BSD-2-Clause
/* From what a flight recorder has kept to a trace, as if it had been recorded so. */
#ifndef KX_FLIGHT_DUMP_H
#define KX_FLIGHT_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/fdr_writer.h"
#include "collect/flight_store.h"
#include "collect/thread_table.h"

struct kx_flight_dump {
	const struct kx_flight_store *store;
	uint64_t from, to;	   /* TSC: from (not 0) on, older than to */
	bool final;		   /* the recording is over: threads that are gone end here */
	struct kx_thread_options threads; /* all but the writer */
	struct kx_fdr_options fdr; /* of the whole session; the trace's own start is set from @from */
	uint64_t tsc_hz;	   /* the best that is known by now */
};

struct kx_flight_dump_counts {
	uint64_t events;   /* entries and exits that were hits */
	uint64_t entries, exits, repaired;
	uint64_t orphans;  /* exits left out: their entry is overwritten, or was never seen */
	uint64_t migrations, threads, bytes;
	uint64_t lost;     /* hits that the rings lost in this time */
	uint64_t first, last; /* TSC of the oldest and the newest hit; 0: there is none */
};

/*
 * Writes the trace to @fd (see fdr_writer.h). What a thread began before @from is not known:
 * exits without their entries are left out, open calls stay open.
 * Errors: write(2)'s, with the sentence; -ENOMEM.
 */
int kx_flight_dump_write(int fd, const struct kx_flight_dump *dump,
			 struct kx_flight_dump_counts *out, struct kx_err *err);

#endif
