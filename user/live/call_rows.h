// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls while they go on: what kxray top shows of each function, in the newest interval and since
 * the beginning.
 *
 * The kernel side keeps only the count, sum and maximum of durations and how many lie between two
 * powers of two (struct kx_call_stats). That costs the traced program less than a record of each
 * call, and needs no work in user space between two intervals. The price: percentiles are
 * interpolated, see kx_call_quantile.
 *
 * This room knows neither tracer nor trace: cmd/cmd_top.c fills the rows; call_lines.h, call_json.h
 * and metrics.h show them as text, JSON and for Prometheus; live_screen.h and metrics_server.h are
 * the two ways to look on.
 */
#ifndef KX_CALL_ROWS_H
#define KX_CALL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

struct kx_call_row {
	char *name, *module;	    /* owned by the struct kx_call_rows that they were added to */
	struct kx_call_stats last;  /* in the newest interval */
	struct kx_call_stats total; /* since the beginning */
};

/* All zero: empty. */
struct kx_call_rows {
	struct kx_call_row *items;
	size_t n, room;
	size_t traced;	       /* of the functions: others have a number, but no probes */
	double seconds;	       /* that the newest interval lasted */
	double total_seconds;  /* since the beginning */
	double cpu, total_cpu; /* seconds of CPU time that the traced processes used in these */
};

/* Adds a function, without calls. Errors: -ENOMEM. */
int kx_call_rows_add(struct kx_call_rows *r, const char *name, const char *module);
/* The calls of a function at the end of an interval: @now counts from the beginning, but max_ns is
 * the interval's. */
void kx_call_row_update(struct kx_call_row *row, const struct kx_call_stats *now);
/* The rows as they are now: names stay @from's. Errors: -ENOMEM, and @to is as it was. Free
 * @to->items with free(). */
int kx_call_rows_copy(struct kx_call_rows *to, const struct kx_call_rows *from);
void kx_call_rows_free(struct kx_call_rows *r);

/* Calls with a measured duration: all but those still open, and those whose exit never came
 * (longjmp, nesting limit). */
uint64_t kx_call_timed(const struct kx_call_stats *s);

/*
 * The duration, ns, that @permille thousandths of the measured calls do not exceed (nearest rank);
 * 0 without any. Durations are taken to be spread evenly over their bucket, which reaches from a
 * power of two to the next, or to the maximum: the value is in the right bucket, so it is more than
 * half and less than twice the true one.
 */
uint64_t kx_call_quantile(const struct kx_call_stats *s, unsigned permille);

/*
 * The time that threads spent in the function's calls, all threads and nested calls of the function
 * added, callees and waiting included, as a share of one CPU's time in @seconds: 1 if one thread
 * was in it all the time. Calls are counted when they end: one that began before the interval
 * brings all its time along.
 */
double kx_call_share(const struct kx_call_stats *s, double seconds);

enum kx_call_sort {
	KX_CALL_BY_SHARE,
	KX_CALL_BY_CALLS,
	KX_CALL_BY_P50,
	KX_CALL_BY_P99,
	KX_CALL_BY_MAX,
	KX_CALL_BY_NAME,
	KX_CALL_SORTS
};
/* "share", "calls", ... in that order, ends with NULL. */
extern const char *const kx_call_sort_words[];

/* Which rows are looked at, and how. */
struct kx_call_view {
	enum kx_call_sort sort; /* largest first; names in alphabetical order */
	const char *filter;	/* part of the name or the module, in any case; NULL or "": all */
	bool total;		/* since the beginning, not in the newest interval */
};

/* What @v looks at of a row, and for how many seconds. */
const struct kx_call_stats *kx_call_stats_of(const struct kx_call_row *row,
					     const struct kx_call_view *v);
double kx_call_seconds_of(const struct kx_call_rows *r, const struct kx_call_view *v);

/* Pointers to the rows that have calls and match, sorted, *@n of them; free with free(). NULL
 * without memory. */
const struct kx_call_row **kx_call_rows_sorted(const struct kx_call_rows *r,
					       const struct kx_call_view *v, size_t *n);

#endif
