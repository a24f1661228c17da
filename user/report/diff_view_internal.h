// SPDX-License-Identifier: BSD-2-Clause
/* What the files that print a diff share: diff_text.c and diff_json.c. */
#ifndef KX_DIFF_VIEW_INTERNAL_H
#define KX_DIFF_VIEW_INTERNAL_H

#include "report/diff_view.h"

struct kx_diff_printer {
	const struct kx_diff *diff;
	const struct kx_diff_summary *summary;
	const struct kx_diff_side *sides; /* 2 */
	const struct kx_diff_view *o;
	const struct kx_diff_row **rows;
	size_t nrows, shown;
	struct kx_text_out *out;
};

/* The function's name and module, of B if it is there; the name is valid until the next call. */
static inline const char *kx_diff_name(const struct kx_diff_side sides[2],
				       const struct kx_diff_row *row)
{
	int side = row->index.b != KX_DIFF_NONE;

	return kx_trace_name(sides[side].names, row->id[side]);
}

static inline const char *kx_diff_module(const struct kx_diff_side sides[2],
					 const struct kx_diff_row *row)
{
	int side = row->index.b != KX_DIFF_NONE;

	return kx_trace_module(sides[side].names, row->id[side]);
}

#endif
