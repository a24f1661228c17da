// SPDX-License-Identifier: BSD-2-Clause
/*
 * What an export format is: one file in this folder that defines one of these, and
 * one line in the table of exporters.c. The format's own command line options are part of it.
 */
#ifndef KX_EXPORTER_H
#define KX_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls/calls.h"
#include "base/err.h"
#include "trace/fdr_reader.h"
#include "base/text_out.h"
#include "trace/symbolizer.h"

struct kx_export_option {
	const char *name;     /* long option without dashes, e.g. "perun-snapshots" */
	const char *argument; /* what it takes, e.g. "N"; NULL for a switch */
	const char *help;     /* one line */
};

/* What an exporter gets. All borrowed. */
struct kx_export {
	struct kx_fdr_file *file;
	const struct kx_fdr_info *info;
	struct kx_symbolizer *names;
	json_t *session;          /* of the map (see session_info.c), or NULL */
	struct kx_calls *calls;   /* filtered; walk it in the order that the format wants */
	struct kx_text_out *out;  /* bytes of any kind; errors are kept until the end */
	uint64_t tsc_hz;          /* never 0: 1e9 if the trace does not say */
	/* for kx_calls_walk */
	void (*progress)(void *ctx, uint64_t done, uint64_t all);
	void *progress_ctx;
	/* value of an option of this format: NULL if not given, "" for a switch that was */
	const char *(*option)(const struct kx_export *x, const char *name);
	void *options_ctx;
	const char *out_path;     /* final path, NULL for standard output, pipes and devices */
	/* one sentence for the user on stderr, e.g. about what the format cannot hold */
	void (*notice)(const struct kx_export *x, const char *text);
};

struct kx_exporter {
	const char *name;    /* as in -f NAME */
	const char *suffix;  /* of the default output: TRACE without .xray + suffix, e.g. ".json" */
	const char *summary; /* one line for --list */
	const struct kx_export_option *options; /* ends with a NULL name; NULL: none */
	/*
	 * For formats that can add to an existing file: the name of that option. When it is given,
	 * x->out->fd holds a copy of that file (or nothing, if there was none), open for pread(2) too
	 * and at its end; it replaces the file when all went well.
	 */
	const char *append_option;
	/*
	 * Writes everything to x->out. Errors: a negative errno with a sentence in @err; -EINVAL
	 * for an option's value that makes no sense, which is wrong usage.
	 */
	int (*run)(const struct kx_export *x, struct kx_err *err);
};

/* All formats, NULL-terminated, in the order of --list. */
extern const struct kx_exporter *const kx_exporters[];

#endif
