// SPDX-License-Identifier: BSD-2-Clause
/*
 * An export format: one file (or folder) in exporters/ that defines a struct kx_exporter, and one line in
 * the table of exporters.c. `kxray export` takes everything else from the struct: name, default suffix,
 * help and the format's own options.
 *
 * An exporter is a function from a trace to bytes. It gets the calls of the trace as a visitor
 * (calls/calls.h), matched, balanced and filtered already, so all formats agree on what a call is and no
 * exporter sees records, damaged stacks or filters. It walks them thread by thread (cheapest) or
 * merged by time, as often as it needs, and writes to a buffered output. The command writes a file under a
 * temporary name and renames it only if run() succeeded, so an exporter may fail at any point
 * without cleaning up its output.
 *
 * What an exporter owes: memory that grows with functions, threads and stacks but not with the trace;
 * nothing printed except through notice(), for what the format cannot hold; text made valid for
 * its readers (names come from the traced program and may contain any byte); exact counts, which the tests
 * compare across all formats by a reader that shares no code with the exporter.
 */
#ifndef KX_EXPORTER_H
#define KX_EXPORTER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls/calls.h"
#include "base/err.h"
#include "trace/fdr_reader.h"
#include "base/text_out.h"
#include "trace/symbolizer.h"
#include "trace/time_line.h"

struct kx_export_option {
	const char *name;     /* long option without dashes, e.g. "perun-snapshots" */
	const char *argument; /* name of its value in the help, e.g. "N"; NULL for a switch */
	const char *help;     /* one line */
};

/* Process ids of Linux are below (PID_MAX_LIMIT in include/linux/threads.h): those of each trace get a range of their own. */
#define KX_EXPORT_PIDS 4194304

/*
 * The place of a trace among others with which it shares an output, or its time only (exporters/merge/merge.h). Only perfetto
 * and chrome look at it.
 */
struct kx_export_place {
	struct kx_time_line *line; /* times are those of it */
	uint64_t zero_ns;	   /* of the line: where a format's own time begins */
	int64_t realtime;	   /* CLOCK_REALTIME is so much more than the line, as corrected; ns */
	/* The rest is of a shared output only. */
	const char *host; /* process names begin with it; NULL: an output of its own */
	uint32_t number;  /* of the trace in the output, from 0 on */
	uint32_t threads; /* of the traces before it, all together */
	bool has_clocks;  /* the line is that of its own CLOCK_BOOTTIME */
	bool is_last;
	/* of the traces before it, to which it adds its own: whether there are events, how many calls and losses */
	bool *any;
	uint64_t *calls, *lost;
};

/* The input of an exporter. All borrowed. */
struct kx_export {
	struct kx_fdr_file *file;
	const struct kx_fdr_info *info;
	struct kx_symbolizer *names;
	json_t *session;          /* of the map (see trace/map_file.h), or NULL */
	struct kx_calls *calls;   /* filtered; walked in the order that the format needs */
	bool whole;               /* calls has no filter but raw: the file's own numbers hold */
	bool raw;                 /* with whole: times are as recorded */
	struct kx_text_out *out;  /* bytes of any kind; errors are kept until the end */
	uint64_t tsc_hz;          /* ticks a second; never 0: 1e9 if the trace does not have it */
	/* for kx_calls_walk; may be NULL */
	void (*progress)(void *ctx, uint64_t done, uint64_t all);
	void *progress_ctx;
	/* value of an option of this format: NULL if it is not given, "" for a switch that is */
	const char *(*option)(const struct kx_export *x, const char *name);
	void *options_ctx;
	const char *out_path;     /* final path, NULL for standard output, pipes and devices */
	/* one sentence for the user on stderr, e.g. about what the format cannot hold */
	void (*notice)(const struct kx_export *x, const char *text);
	const struct kx_export_place *place; /* among other traces; NULL: it is alone */
};

/* Whether the output has other traces, too. */
static inline bool kx_export_is_shared(const struct kx_export *x)
{
	return x->place && x->place->host;
}

/* A process or thread id in the output; -EINVAL if it cannot be told from those of other traces. */
static inline int kx_export_id(const struct kx_export *x, int32_t id, int32_t *out, struct kx_err *err)
{
	*out = id;
	if (!kx_export_is_shared(x))
		return 0;
	if (id < 0 || id >= KX_EXPORT_PIDS)
		return kx_err_set(err, -EINVAL, "%s: %d is not an id of a Linux process or thread, so it cannot be told from those "
						"of other hosts in one file; merge into an archive (-f archive)",
				  x->place->host, (int)id);
	*out = (int32_t)x->place->number * KX_EXPORT_PIDS + id;
	return 0;
}

struct kx_exporter {
	const char *name;    /* as in -f NAME */
	const char *suffix;  /* of the default output: TRACE without .xray + suffix, e.g. ".json" */
	const char *summary; /* one line for --list */
	/*
	 * What to do with the output, a clause in the imperative for the end of an export ("open it in https://ui.perfetto.dev"); each
	 * FILE in it becomes the output's path, quoted for a shell: a command comes last, after a colon.
	 */
	const char *open_hint;
	const struct kx_export_option *options; /* ends with a NULL name; NULL: none */
	/*
	 * For formats that can append to an existing file: the name of that option. If it is given,
	 * x->out->fd is a copy of that file (empty if there is none), positioned at its end and
	 * readable with pread(2); it replaces the file if run() succeeds.
	 */
	const char *append_option;
	/*
	 * For formats that write one of several parts of a trace: the name of the option that chooses it. If it is given, its
	 * value stands before the suffix in the default output's name (trace.functions.csv).
	 */
	const char *part_option;
	bool raw; /* the calls are as recorded, with the probes' own time: the output is read again */
	/*
	 * Writes everything to x->out. Errors: a negative errno with a sentence in @err; -EINVAL
	 * for an invalid value of an option, which is reported as wrong usage.
	 */
	int (*run)(const struct kx_export *x, struct kx_err *err);
};

/* All formats, NULL-terminated, in the order of --list. */
extern const struct kx_exporter *const kx_exporters[];

#endif
