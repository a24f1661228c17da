// SPDX-License-Identifier: BSD-2-Clause
/*
 * The statistics of a trace, per function, in one pass over the file (a second one, rarely more, where the
 * histograms of all functions would not fit into memory at once). Memory grows with
 * functions, threads and open calls, not with events.
 *
 * Two readers fill it: the fast one takes the file's records in batches (report_records.h); where
 * calls are filtered or counted per process, the other takes them from the call view
 * (report_calls.h). Both follow calls/open_calls.h, so they count the same
 * (tests/unit/test_report_agrees.c). report_view.h prints a report.
 */
#ifndef KX_REPORT_H
#define KX_REPORT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "calls/calls.h"
#include "base/err.h"
#include "trace/fdr_reader.h"
#include "report/report_groups.h"

struct kx_report;

struct kx_report_totals {
	uint64_t events;    /* function records, without exits that the recorder added */
	uint64_t calls;     /* all that began, as in the exports */
	uint64_t lost;      /* entries and exits that the recorder lost */
	uint64_t repaired;  /* calls closed without an exit of their own, when recording or here */
	uint64_t orphans;   /* exits without their entry, left out when recording or here */
	uint64_t open;      /* calls not completed at the trace's end */
	uint64_t self;      /* ticks inside traced functions, of all threads together */
	uint64_t self_off;  /* of these: not on a CPU */
	bool ended_early;   /* the recorder did not write its final numbers: losses are not known */
	bool has_sched;     /* the trace has times off the CPU (record --sched) */
	uint64_t threads;
	uint64_t first_tsc, last_tsc; /* of all records, ticks */
	unsigned passes;    /* over the file */
};

/*
 * All times are ticks, inclusive of callees, of completed calls with a measured end only, without the
 * probes' own time; all 0 if there is none.
 */
struct kx_report_function {
	uint32_t id;
	uint32_t group; /* below kx_report_ngroups; else 0 */
	uint64_t count;   /* all calls, as in the exports */
	uint64_t open;    /* of count: not completed at the trace's end */
	uint64_t no_exit; /* of count: completed, but their exit was not recorded */
	uint64_t total; /* recursion counted once: only the outermost calls add to it */
	uint64_t self;  /* without callees */
	uint64_t min, max;
	uint64_t p50, p90, p99; /* by nearest rank, within 1 % */
	/* 0 unless has_sched. The rest of the time a call was on the CPU. */
	uint64_t off;      /* of total: the thread was on no CPU */
	uint64_t wait;     /* of off: the thread was runnable */
	uint64_t self_off; /* of self: the same as off */
};

struct kx_report_options {
	json_t *session;       /* of the map: its "lost" and "orphans" are preferred; may be NULL */
	struct kx_calls *calls; /* what to report; NULL: the whole file */
	bool whole;            /* calls has no filter */
	bool raw;              /* without calls: times as recorded, with the probes' own time */
	enum kx_report_by by;  /* statistics per group and function; needs calls, but for KX_REPORT_BY_MODULE */
	size_t histogram_bytes; /* memory for all histograms; 0: by functions */
};

/* Reads @f from its beginning. Errors: -EBADMSG where the file is damaged, -ENOMEM. */
int kx_report_new(struct kx_fdr_file *f, const struct kx_report_options *options,
		  struct kx_report **out, struct kx_err *err);
void kx_report_free(struct kx_report *r);

const struct kx_report_totals *kx_report_get_totals(const struct kx_report *r);
/* Functions that were entered, in order of their first entry. */
size_t kx_report_nfunctions(const struct kx_report *r);
/* The total of function @index: a part of what kx_report_get_function gives, for sorting. */
uint64_t kx_report_get_total(const struct kx_report *r, size_t index);
/* Prefetches function @index for kx_report_get_function. */
void kx_report_prefetch(const struct kx_report *r, size_t index);
void kx_report_get_function(const struct kx_report *r, size_t index, struct kx_report_function *out);

/* The groups by process, thread, thread name or CPU, in order of their first call; else none. */
size_t kx_report_ngroups(const struct kx_report *r);
const struct kx_report_group *kx_report_get_group(const struct kx_report *r, size_t index);

#endif
