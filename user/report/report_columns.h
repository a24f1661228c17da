// SPDX-License-Identifier: BSD-2-Clause
/* The columns of the table of functions, and which of them fit on a screen. */
#ifndef KX_REPORT_COLUMNS_H
#define KX_REPORT_COLUMNS_H

#include "report/report_view_internal.h"

enum kx_column_kind { KX_COLUMN_NUMBER, KX_COLUMN_TIME };

struct kx_column {
	const char *title;
	enum kx_report_key key; /* its place in the lists of numbers, and what --sort calls it */
	enum kx_column_kind kind;
	size_t offset; /* of its number in a struct kx_report_function; ON-CPU: of the total, from which OFF-CPU is taken */
};

#define KX_COLUMNS 13

struct kx_columns {
	const struct kx_column *shown[KX_COLUMNS];
	int widths[KX_COLUMNS]; /* with the blanks before it */
	size_t n;
	size_t name;		/* columns for the function's name; 0: no limit */
	bool one_module;	/* of all functions: on a narrow screen it is not named in each row */
	const struct kx_column *dropped[KX_COLUMNS]; /* for lack of room */
	size_t ndropped;
};

static inline uint64_t kx_column_value(const struct kx_column *c, const struct kx_report_function *f)
{
	uint64_t value = *(const uint64_t *)((uintptr_t)f + c->offset);

	return c->key == KX_REPORT_BY_ON ? value - f->off : value;
}

/* The columns of @v's table: those that have something to say, less those that leave too little room for names. */
void kx_columns_choose(const struct view *v, struct kx_columns *out);

#endif
