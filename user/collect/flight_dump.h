// SPDX-License-Identifier: BSD-2-Clause
/* Writes the contents of a flight recorder as a trace, as if the time span had been recorded. */
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
	uint64_t from, to; /* TSC: records in [from, to); from is not 0 */
	bool final; /* the recording has ended: close the calls of threads that no longer exist */
	struct kx_thread_options threads; /* all but the writer */
	struct kx_fdr_options fdr; /* of the whole session; the trace's own start is set from @from */
	uint64_t tsc_hz;	   /* as measured so far */
};

struct kx_flight_dump_counts {
	uint64_t events;   /* entries and exits that were hits */
	uint64_t entries, exits, repaired;
	uint64_t orphans; /* exits left out: their entry is overwritten, or before the recording */
	uint64_t migrations, threads, bytes;
	uint64_t lost;     /* hits that the rings lost in this time */
	uint64_t first, last; /* TSC of the oldest and the newest hit; 0: there is none */
};

/*
 * Writes the trace to @fd (see fdr_writer.h). Exits of calls that began before @from are left out;
 * calls open at @to stay open. Errors: write(2)'s, with a message; -ENOMEM.
 */
int kx_flight_dump_write(int fd, const struct kx_flight_dump *dump,
			 struct kx_flight_dump_counts *out, struct kx_err *err);

#endif
