// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tables of `export -f csv`: calls (the default), functions, processes, sched, losses. Each is a
 * list of columns in a file of its own, and a function that emits its rows.
 *
 * A column says what its text depends on. Neighbouring columns of a thread, or of a function, are
 * made into text once and copied from then on (row.h): names need no quoting again for each of a
 * million calls. Only what differs in each row is formatted in each row.
 *
 * --csv-columns takes any columns in any order (columns.h). A new column is a row in a list.
 */
#ifndef KX_CSV_TABLE_H
#define KX_CSV_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text_out.h"
#include "exporters/exporter.h"
#include "trace/values.h"

struct kx_csv;

/* What the text of a cell depends on, besides the trace. */
enum kx_csv_scope {
	KX_CSV_OF_ROW,
	KX_CSV_OF_THREAD,   /* the newest of kx_csv_set_thread */
	KX_CSV_OF_FUNCTION, /* the row's func */
};

struct kx_csv_column {
	const char *name;
	enum kx_csv_scope scope;
	/* Writes the cell. Numbers that are not known: kx_csv_put_null. */
	void (*put)(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column);
	/* Whether the column is there if --csv-columns does not say; NULL: always. */
	bool (*by_default)(const struct kx_csv *c);
	/* Refuses a column that this trace cannot fill, with a sentence; may be NULL. */
	int (*check)(const struct kx_csv *c, struct kx_err *err);
	const char *value; /* of a constant column; else NULL */
};

struct kx_csv_table {
	const char *name;
	const struct kx_csv_column *columns; /* beside the common ones; ends with a NULL name */
	bool has_threads; /* rows are of threads; else each is of its own function or process */
	int (*run)(struct kx_csv *c, struct kx_err *err); /* emits all rows; errors: -ENOMEM, those of a walk */
};

extern const struct kx_csv_table kx_csv_calls, kx_csv_functions, kx_csv_processes, kx_csv_sched,
	kx_csv_losses;

struct kx_csv_cells; /* of row.c */

struct kx_csv {
	const struct kx_export *x;
	const struct kx_csv_table *table;
	const char *null;   /* --csv-null */
	uint64_t skip;	    /* --csv-skip: rows still to be left out */
	uint64_t first_tsc; /* where times count from */
	uint64_t trace;	    /* column trace: ns since 1970 at first_tsc, if has_trace */
	bool has_trace;
	struct kx_value_map values; /* of the session; owned */
	struct kx_csv_column *columns; /* chosen; of columns.c, as names */
	char *names;
	size_t ncolumns;
	struct kx_csv_cells *cells;
	/* the row that is written */
	const struct kx_call_thread *thread; /* NULL in tables without threads */
	uint32_t func;			     /* 0: none */
	const void *row;		     /* what else the table's columns take: a struct of its file */
};

/* Ticks of the trace as ns since its first record, and ns that ticks last. */
static inline uint64_t kx_csv_time(const struct kx_csv *c, uint64_t tsc)
{
	return tsc > c->first_tsc ? kx_trace_ns(tsc - c->first_tsc, c->x->tsc_hz) : 0;
}

static inline uint64_t kx_csv_ns(const struct kx_csv *c, uint64_t ticks)
{
	return kx_trace_ns(ticks, c->x->tsc_hz);
}

#endif
