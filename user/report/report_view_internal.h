// SPDX-License-Identifier: BSD-2-Clause
/* What the files that print a report share: report_text.c and report_json.c, report_rows.c (which rows, in which order). */
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

/* The rows of one group, or of all together. */
struct group {
	uint32_t number;
	size_t first, count, shown; /* rows */
	uint64_t calls, self;	    /* ticks */
	union {
		uint64_t weight; /* what the group is sorted by */
		const char *name;
	};
};

struct view {
	const struct kx_report_view *o;
	const struct kx_fdr_info *info;
	const struct kx_report *report;
	const struct kx_report_totals *totals;
	struct kx_symbolizer *names;
	const struct kx_screen *screen;
	struct row *rows; /* until they are sorted */
	uint32_t *order; /* then: the functions' indexes in the report */
	size_t nrows, shown;
	struct group *groups;
	size_t ngroups;
	struct kx_text_out *out;
};

/* Sorts the rows, grouped if the report is. 0 or -ENOMEM; free with kx_rows_free. */
int kx_rows_sort(struct view *v);
void kx_rows_free(struct view *v);

/* Name of a group's process, thread or module; "" if it is not known. */
const char *kx_group_name(const struct view *v, uint32_t number);

/*
 * Gets the rows from @first to @end, as many as fit; returns how many. Their order is not that of
 * memory, so their cache misses overlap: one by one takes several times as long.
 */
size_t kx_rows_fetch(const struct view *v, size_t first, size_t end,
		     struct kx_report_function f[KX_REPORT_FETCH]);

/* What a function's recording left out; NULL: nothing. */
const struct kx_budget_entry *kx_view_sampling(const struct view *v, uint32_t id);
#endif
