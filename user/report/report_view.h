// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints a report, as a table or as JSON. A table fits its screen: columns are dropped in an order of
 * importance (report_columns.h) and names lose what tells least (base/display.h). Where there is no screen, in pipes and
 * files, all is whole.
 */
#ifndef KX_REPORT_VIEW_H
#define KX_REPORT_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/screen.h"
#include "trace/fdr_reader.h"
#include "report/report.h"
#include "base/text_out.h"
#include "trace/budget_info.h"
#include "trace/symbolizer.h"

enum kx_report_key {
	KX_REPORT_BY_TOTAL, KX_REPORT_BY_SELF, KX_REPORT_BY_COUNT, KX_REPORT_BY_MIN,
	KX_REPORT_BY_P50, KX_REPORT_BY_P90, KX_REPORT_BY_P99, KX_REPORT_BY_MAX, KX_REPORT_BY_OPEN,
	KX_REPORT_BY_NO_EXIT, KX_REPORT_BY_NAME,
	KX_REPORT_BY_ON, KX_REPORT_BY_OFF, KX_REPORT_BY_WAIT, /* these need scheduler events */
};

/* The key of this name (--sort); -1 if there is none. */
int kx_report_key(const char *name);

struct kx_report_view {
	enum kx_report_key sort;
	size_t limit; /* print this many functions (of each group); 0: all */
	bool json;
	enum kx_report_by by; /* the report's groups */
	struct kx_screen screen;
	const char *path;      /* of the trace, where reports of several follow one another; else NULL */
	bool is_next;	       /* there is one before it */
	const json_t *session; /* what was recorded; borrowed, may be NULL */
	const struct kx_budget_info *budget; /* what was sampled; borrowed, may be NULL */
};

/*
 * Prints @report of a trace with these properties. EPIPE is no error: the reader closed the pipe.
 * Errors: -ENODATA (a key that the trace does not have), -ENOMEM, write(2)'s.
 */
int kx_report_print(const struct kx_report *report, const struct kx_report_view *view,
		    const struct kx_fdr_info *info, struct kx_symbolizer *names,
		    struct kx_text_out *out, struct kx_err *err);

#endif
