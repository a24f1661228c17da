// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which columns a table gets: its own by default, those that --csv-columns names, or with "+" before
 * them its own and these. NAME=VALUE is a column that has this value in all rows, and so is the name of a label of the
 * recording. Columns that are common to tables are here, too.
 */
#ifndef KX_CSV_COLUMNS_H
#define KX_CSV_COLUMNS_H

#include "exporters/csv/table.h"

/*
 * Sets c->columns and c->ncolumns, and the names in them, which last until kx_csv_columns_free. @list: --csv-columns, or
 * NULL. Errors: -EINVAL (no such column, one twice, or none in this trace), -ENOMEM.
 */
int kx_csv_columns_choose(struct kx_csv *c, const char *list, struct kx_err *err);
void kx_csv_columns_free(struct kx_csv *c);

/* For lists of tables, of which each row begins with the name. */
void kx_csv_put_pid(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column);
void kx_csv_put_tid(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column);
void kx_csv_put_thread(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column);
void kx_csv_put_function(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column);
void kx_csv_put_module(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column);
void kx_csv_put_function_id(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column);
void kx_csv_put_function_key(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column);
void kx_csv_put_file(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column);
void kx_csv_put_line(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column);

#define KX_CSV_THREAD_COLUMNS                                 \
	{ "pid", KX_CSV_OF_THREAD, .put = kx_csv_put_pid },   \
	{ "tid", KX_CSV_OF_THREAD, .put = kx_csv_put_tid },   \
	{ "thread", KX_CSV_OF_THREAD, .put = kx_csv_put_thread }
#define KX_CSV_FUNCTION_COLUMNS                                   \
	{ "function", KX_CSV_OF_FUNCTION, .put = kx_csv_put_function }, \
	{ "module", KX_CSV_OF_FUNCTION, .put = kx_csv_put_module }

/* For by_default: only where --csv-columns names it. */
bool kx_csv_never(const struct kx_csv *c);

#endif
