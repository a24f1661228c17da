// SPDX-License-Identifier: BSD-2-Clause
/*
 * The line that `record` shows on a terminal while it records, refreshed about once a second:
 *
 *     kxray: 0:07 left, 412,031 events/s, 0 lost, 3.3 MB, hottest parse_line 41 %
 *
 * It is drawn over itself, and its cursor stays in its first column, so that all of it can be
 * erased also after the terminal has wrapped it to a smaller width. Writing to the terminal never
 * waits: one that is stopped (Ctrl-S) or stuck must not stop the recording. Nothing is drawn by a
 * process in the background, or on a terminal that knows no escape sequences.
 */
#ifndef KX_STATUS_LINE_H
#define KX_STATUS_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/screen.h"
#include "record/recording.h"

struct kx_status_line {
	int fd; /* of the terminal, non-blocking; negative: there is none */
	bool shown;
};

enum kx_status_kind { KX_STATUS_TRACE, KX_STATUS_FLIGHT, KX_STATUS_COUNT };

/* For standard error, if that is a terminal; else all other functions do nothing. */
void kx_status_line_open(struct kx_status_line *l);
void kx_status_line_show(struct kx_status_line *l, const struct kx_recording_status *s,
			 enum kx_status_kind kind);
/* Erases it: before anything else is printed. */
void kx_status_line_clear(struct kx_status_line *l);
void kx_status_line_close(struct kx_status_line *l);

/*
 * The line without its end, in allocated memory, at most screen->columns wide: what says least is
 * left out, and the name of the function shortened. NULL if memory ran out.
 */
char *kx_status_text(const struct kx_recording_status *s, enum kx_status_kind kind,
		     const struct kx_screen *screen);

#endif
