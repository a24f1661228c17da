// SPDX-License-Identifier: BSD-2-Clause
/* The trace that report, export and dump read, and the map that names its functions. */
#ifndef KX_TRACE_INPUT_H
#define KX_TRACE_INPUT_H

#include <stdbool.h>

#include "base/err.h"
#include "cmd/options.h"
#include "trace/fdr_reader.h"
#include "trace/symbolizer.h"

struct kx_trace_input {
	const char *path; /* the operand FILE; "-": standard input */
	const char *map;  /* --map; NULL: PATH.map if it exists */
	bool names_only; /* set before it is opened: nothing but names is needed of the map's functions */
	struct kx_fdr_file *file;   /* once it is open */
	struct kx_symbolizer names; /* the same */
};

/* The row of --map for a command whose arguments, a @type, hold a struct kx_trace_input as @member. */
#define KX_TRACE_MAP_OPTION(type, member)                                                          \
	{ .name = "map", .short_name = 'm', .kind = KX_OPTION_TEXT, .argument = "MAP",             \
	  KX_FIELD(type, member.map),                                                              \
	  .help = "names functions: kxray's map, or a binary built with XRay; default FILE.map",   \
	  .manual = "The map, where it is not beside the trace: kxray's, or a binary built with XRay." }

/* Whether a trace was named. Errors: -EINVAL. */
int kx_trace_input_check(const struct kx_trace_input *t, struct kx_err *err);

/*
 * Opens trace and map and checks that they belong together. With @damaged_too a damaged trace opens
 * with the records before the damage, see kx_fdr_open_damaged. Also after an error, call
 * kx_trace_input_close. Errors: those of kx_fdr_open, kx_symbolizer_open and kx_symbolizer_check.
 */
int kx_trace_input_open(struct kx_trace_input *t, bool damaged_too, struct kx_err *err);
void kx_trace_input_close(struct kx_trace_input *t);

/*
 * Prints on stderr that the trace is truncated, or that functions have no names; @done: what
 * @command does with the complete records, e.g. "in the report".
 */
void kx_trace_input_warn(const struct kx_trace_input *t, const char *command, const char *done);

#endif
