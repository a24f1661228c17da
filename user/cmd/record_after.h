// SPDX-License-Identifier: BSD-2-Clause
/*
 * What follows a recording: on a terminal the functions with most time of their own and the
 * commands to type next; with
 * --open the trace in a format that can be looked at, opened if there is a desktop.
 */
#ifndef KX_RECORD_AFTER_H
#define KX_RECORD_AFTER_H

#include "cmd/options.h"
#include "cmd/record_arguments.h"

/* --open[=FORMAT]: @field is a const struct kx_exporter *; without FORMAT html, or perfetto where
 * that is missing. */
int kx_record_set_open(void *field, const struct kx_option *o, const char *value,
		       struct kx_err *err);

/* After the summary of a recording that began. Returns the exit status: that of an export that
 * failed, else KX_EXIT_DONE. */
int kx_record_after(const struct kx_record_arguments *a, const struct kx_recording_result *r);

#endif
