// SPDX-License-Identifier: BSD-2-Clause
/* The first lines of every text of `kxray report`: what was recorded. */
#ifndef KX_REPORT_HEAD_H
#define KX_REPORT_HEAD_H

#include <jansson.h>

#include "base/screen.h"
#include "base/text_out.h"
#include "report/report.h"
#include "trace/fdr_reader.h"

/*
 * Prints program, process id, command, host, date; then duration, threads, events and what is missing of them, and the
 * format of the trace. @session is the map's; NULL: the first of these are not known.
 */
void kx_report_head(struct kx_text_out *o, const struct kx_screen *screen, const json_t *session,
		    const struct kx_report_totals *t, const struct kx_fdr_info *info);

/* "events":..,"lost":..,...: the first members of all JSON of `kxray report`. */
void kx_totals_json(struct kx_text_out *o, const struct kx_report_totals *t, const struct kx_fdr_info *info);

/* Flushes the output. EPIPE is no error: the reader (head, less) closed the pipe. Errors: write(2)'s. */
int kx_view_flush(struct kx_text_out *o, struct kx_err *err);

/* @pieces of a sentence, separated by ", ", in lines of at most the screen's width; ends the line. */
void kx_put_pieces(struct kx_text_out *o, const struct kx_screen *screen, const char *const *pieces,
		   size_t n);

#endif
