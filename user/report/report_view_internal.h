// SPDX-License-Identifier: BSD-2-Clause
/* What report_view.c (text and JSON) and report_rows.c (which rows, in which order) share. */
#ifndef KX_REPORT_VIEW_INTERNAL_H
#define KX_REPORT_VIEW_INTERNAL_H

#include "report/report_view.h"

#define KX_REPORT_FETCH 64

struct row {
	union {
		uint64_t key;
		char *name; /* sort by name; owned */
	};
	uint32_t index;
};

/* The rows of one process, or of all together. */
struct group {
	uint32_t process;
	size_t first, count, shown; /* rows */
	union {
		uint64_t weight; /* what the process is sorted by */
		const char *name;
	};
};

struct view {
	const struct kx_report_view *o;
	const struct kx_fdr_info *info;
	const struct kx_report *report;
	const struct kx_report_totals *totals;
	struct kx_symbolizer *names;
	struct row *rows;
	size_t nrows, shown;
	struct group *groups;
	size_t ngroups;
	struct kx_text_out *out;
};

/* Sorts the rows, grouped by process if set in v->o. 0 or -ENOMEM; free with kx_rows_free. */
int kx_rows_sort(struct view *v);
void kx_rows_free(struct view *v);

/*
 * Gets the rows from @first to @end, as many as fit; returns how many. Their order is not that of
 * memory, so their cache misses overlap: one by one takes several times as long.
 */
size_t kx_rows_fetch(const struct view *v, size_t first, size_t end,
		     struct kx_report_function f[KX_REPORT_FETCH]);

#endif
