// SPDX-License-Identifier: BSD-2-Clause
/* Prints many rows with several threads: half of the time of a large report is names and numbers as text. */
#ifndef KX_REPORT_PIECES_H
#define KX_REPORT_PIECES_H

#include "report/report_view_internal.h"

/* Prints rows @first to @end of @v, to v->out and with names of v->names. */
typedef void (*kx_print_rows)(const struct view *v, size_t first, size_t end, const void *ctx);

/*
 * Calls @print for all of [@first, @end): once, or, if there are many rows and several CPUs, for pieces of
 * them at the same time, each with an output and a cache of names of its own; v->out gets the pieces
 * in order. Without threads or memory this thread prints all.
 */
void kx_rows_print(const struct view *v, size_t first, size_t end, kx_print_rows print,
		   const void *ctx);

#endif
