// SPDX-License-Identifier: BSD-2-Clause
/* What `kxray report` shows besides its table: trees, callers and callees, histograms, slowest calls, values. */
#ifndef KX_REPORT_VIEWS_H
#define KX_REPORT_VIEWS_H

#include "cmd/options.h"
#include "report/report_view.h"

enum kx_view_kind {
	KX_VIEW_TABLE,
	KX_VIEW_TREE,
	KX_VIEW_CALLERS,
	KX_VIEW_CALLEES,
	KX_VIEW_HISTOGRAM,
	KX_VIEW_SLOWEST,
	KX_VIEW_BY_VALUE,
};

struct kx_view_arguments {
	enum kx_view_kind kind;
	const char *function; /* [MODULE:]GLOB; NULL: not given */
	size_t slowest;
	const char *value; /* name of a value of calls */
};

/* The rows that choose a view; they belong at a struct kx_view_arguments. */
extern const struct kx_option kx_view_options[];

/*
 * The operands of report: FILE, and FUNCTION where it follows --tree or --slowest N. @before is argv as it was before
 * it was parsed, and ends with NULL. Errors: -EINVAL.
 */
int kx_view_operands(struct kx_view_arguments *a, char *const *operands, const char *const *before, const char **file,
		     struct kx_err *err);

/* Whether these arguments make sense together. Errors: -EINVAL. */
int kx_view_check(const struct kx_view_arguments *a, const struct kx_report_view *table, struct kx_err *err);

/* What the views need of the trace; @whole: the calls are not filtered. */
struct kx_view_input {
	struct kx_calls *calls;
	struct kx_symbolizer *names;
	const struct kx_fdr_info *info;
	bool whole;
};

/*
 * Reads the calls and prints the view that @a chooses, which is not the table; @table has limit, groups, screen and
 * session. *@lost: events are missing. Errors: -ENODATA (nothing to show), -EINVAL, -EBADMSG, -ENOMEM, write(2)'s.
 */
int kx_view_run(const struct kx_view_input *in, const struct kx_view_arguments *a, const struct kx_report_view *table,
		bool *lost, struct kx_err *err);

#endif
