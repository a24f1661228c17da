// SPDX-License-Identifier: BSD-2-Clause
/*
 * Cells and rows of CSV after RFC 4180: quotes where they are needed, doubled in them; lines end
 * with CR LF.
 */
#ifndef KX_CSV_ROW_H
#define KX_CSV_ROW_H

#include "exporters/csv/table.h"

/*
 * A cell of any text. A text that begins with =, +, -, @ or a tab gets an apostrophe before it, so
 * that no spreadsheet runs it as a formula.
 */
void kx_csv_put_text(struct kx_text_out *o, const char *text);
void kx_csv_put_signed(struct kx_text_out *o, int64_t value);
void kx_csv_put_hex(struct kx_text_out *o, uint64_t value); /* 0x... */
/* A number that is not known. */
static inline void kx_csv_put_null(const struct kx_csv *c, struct kx_text_out *o)
{
	kx_text_str(o, c->null);
}

/* Prepares rows of c->columns and writes the line of their names; -ENOMEM. */
int kx_csv_begin(struct kx_csv *c);
void kx_csv_end(struct kx_csv *c);

/* Rows are of @t from now on, or its names have changed. */
int kx_csv_set_thread(struct kx_csv *c, const struct kx_call_thread *t);
/* The same as a callback of a walk, whose context is a struct kx_csv. */
int kx_csv_on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc);

/* Writes the row of c->func and c->row, unless it is to be skipped. -ENOMEM, or the output's error. */
int kx_csv_row(struct kx_csv *c);

#endif
