// SPDX-License-Identifier: BSD-2-Clause
/* The columns of the table of a diff, and which of them fit on a screen. */
#ifndef KX_DIFF_COLUMNS_H
#define KX_DIFF_COLUMNS_H

#include "report/diff_view_internal.h"

enum kx_diff_kind {
	KX_DIFF_VERDICT,
	KX_DIFF_DIFFERENCE,
	KX_DIFF_TIME,
	KX_DIFF_COUNT,
	KX_DIFF_CHANGE,
	KX_DIFF_MARGIN
};

struct kx_diff_column {
	const char *title;
	enum kx_diff_kind kind;
	/* NAN: the row has none */
	double (*value)(const struct kx_diff_row *row, const struct kx_diff_summary *s);
	enum kx_diff_key key; /* shown first if the table is sorted by it */
	unsigned rank;	      /* columns with a higher one go first when the screen is too narrow */
};

#define KX_DIFF_COLUMNS 21

struct kx_diff_columns {
	const struct kx_diff_column *shown[KX_DIFF_COLUMNS], *dropped[KX_DIFF_COLUMNS];
	int widths[KX_DIFF_COLUMNS]; /* with the blanks before it */
	size_t n, ndropped;
	size_t name;	 /* columns for the function's name; 0: no limit */
	bool one_module; /* of all functions: on a narrow screen it is not named in each row */
};

void kx_diff_columns_choose(const struct kx_diff_printer *p, struct kx_diff_columns *out);

#endif
