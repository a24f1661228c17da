// SPDX-License-Identifier: BSD-2-Clause
/* The calls of functions by one of their values: report --by-value. by_value_view.c prints them. */
#ifndef KX_BY_VALUE_H
#define KX_BY_VALUE_H

#include "base/pair_map.h"
#include "report/histogram.h"
#include "report/report_view.h"
#include "report/walk_totals.h"
#include "trace/value_index.h"

/* Calls of one function with one value. Times are ticks, of completed calls with a measured end
 * only. */
struct kx_by_value_row {
	uint64_t calls; /* all */
	uint64_t timed; /* of these: with a time */
	uint64_t total, min, max;
	struct kx_histogram times;
};

struct kx_by_value_function {
	uint32_t func;
	uint64_t calls, total;
	size_t rows;
};

struct kx_by_value {
	struct kx_value_map map;
	struct kx_value_index values;
	struct kx_by_value_row *rows; /* by number of the value */
	size_t room;
	struct kx_pair_map index; /* (0, function) */
	struct kx_by_value_function *functions;
	size_t functions_room;
	struct kx_histogram_pool pool;
	struct kx_walk_totals totals;
};

struct kx_by_value_options {
	const char *label; /* of the value, as the spec has it */
	bool whole;	   /* the calls are not filtered */
};

/*
 * Walks the calls of functions that have such a value. Distinct values beyond KX_VALUE_INDEX_MOST are
 * one row of each function, so memory is bounded. @b is all zero; free in any case. @session: the
 * map's; may be NULL; must outlive @b. Errors: -ENODATA (no call has that value), -EBADMSG,
 * -ENOMEM.
 */
int kx_by_value_read(struct kx_calls *calls, const json_t *session,
		     const struct kx_by_value_options *o, struct kx_by_value *b,
		     struct kx_err *err);
void kx_by_value_free(struct kx_by_value *b);

/*
 * Prints the functions with the largest totals first, and of each the values with the largest
 * @view->sort (total, count, min, p50, p90, p99 or max): @view->limit of them, or 20, or, as JSON,
 * all. Errors: -EINVAL (another sort), -ENOMEM, write(2)'s but EPIPE.
 */
int kx_by_value_print(struct kx_by_value *b, const struct kx_by_value_options *o,
		      const struct kx_report_view *view, const struct kx_fdr_info *info,
		      struct kx_symbolizer *names, struct kx_text_out *out, struct kx_err *err);

#endif
