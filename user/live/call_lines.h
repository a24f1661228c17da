// SPDX-License-Identifier: BSD-2-Clause
/* Rows of calls as lines of text: the table, and one function's histogram. */
#ifndef KX_CALL_LINES_H
#define KX_CALL_LINES_H

#include "base/screen.h"
#include "base/text_out.h"
#include "live/call_rows.h"

/* "WHAT: 34567 calls/s of 12 functions, 87 % of a CPU": no line end. @what: "process 1234 (demo)"
 */
void kx_put_call_summary(struct kx_text_out *out, const struct kx_screen *screen, const char *what,
			 const struct kx_call_rows *rows, const struct kx_call_view *v);
/* The line of titles, with the column that @v sorts by in brackets; ends the line. */
void kx_put_call_titles(struct kx_text_out *out, const struct kx_screen *screen,
			const struct kx_call_view *v);
/* One function; ends the line. */
void kx_put_call_row(struct kx_text_out *out, const struct kx_screen *screen,
		     const struct kx_call_row *row, const struct kx_call_view *v, double seconds);
/* All of a table but its summary: titles and at most @limit rows (0: all). Errors: -ENOMEM. */
int kx_put_call_table(struct kx_text_out *out, const struct kx_screen *screen,
		      const struct kx_call_rows *rows, const struct kx_call_view *v, size_t limit);

/* The function, its sums, and a bar for each power of two, in whole lines. */
void kx_put_call_histogram(struct kx_text_out *out, const struct kx_screen *screen,
			   const struct kx_call_row *row, const struct kx_call_view *v,
			   double seconds);

#endif
