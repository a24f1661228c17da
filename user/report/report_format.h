// SPDX-License-Identifier: BSD-2-Clause
/* Numbers, times and names as the tables of a report print them. */
#ifndef KX_REPORT_FORMAT_H
#define KX_REPORT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/screen.h"
#include "base/text_out.h"

#define KX_TIME_WIDTH(hz) ((hz) ? 10 : 14) /* of a column of times, blanks before it included */

/* "123 ns", "1.234 us", "12.34 ms": four digits and a unit; without @hz (ticks a second) the ticks. Returns its length. */
size_t kx_format_time(char text[32], uint64_t ticks, uint64_t hz);

/* @value, below 1e15 either way, as "%.1f" and "%.0f" print it. Return its length. */
size_t kx_format_tenths(char text[32], double value);
size_t kx_format_whole(char text[32], double value);

/* Right-aligned in @width columns; units of times are below each other. */
void kx_put_time(struct kx_text_out *o, uint64_t ticks, uint64_t hz);
void kx_put_number(struct kx_text_out *o, int width, uint64_t value);
/* A text of ASCII in a column of times. */
void kx_put_time_text(struct kx_text_out *o, const char *text, uint64_t hz);

/* @text from a traced program, printable. */
void kx_put_text(struct kx_text_out *o, const char *text);
/*
 * A function as "NAME [MODULE]", in at most @columns columns (0: whole); @module may be "".
 */
void kx_put_function(struct kx_text_out *o, const struct kx_screen *screen, const char *name,
		       const char *module, size_t columns);
/* @text in @style. */
void kx_put_styled(struct kx_text_out *o, const struct kx_screen *screen, enum kx_style style,
		   const char *text);
/* @text, made printable, in at most @columns columns (0: whole); it loses its end. */
void kx_put_fitted(struct kx_text_out *o, const char *text, size_t columns);
/* @text, of @size bytes and printable already, likewise. */
void kx_put_fitted_printable(struct kx_text_out *o, const char *text, size_t size, size_t columns);
/* @text, of ASCII, in lines of at most the screen's width; ends the line. */
void kx_put_wrapped(struct kx_text_out *o, const struct kx_screen *screen, const char *text);

#endif
