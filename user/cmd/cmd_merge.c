// SPDX-License-Identifier: BSD-2-Clause
/* kxray merge: traces of several hosts or sessions on one time line. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_text.h"
#include "base/printable.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/export_formats.h"
#include "cmd/export_output.h"
#include "cmd/filter_options.h"
#include "cmd/merge_traces.h"

#define NAME "merge"

enum form { FORM_BY_NAME, FORM_ARCHIVE, FORM_PERFETTO, FORM_CHROME };

struct arguments {
	const char *output;
	enum form form;
	const char **offsets, **pairs;
	size_t noffsets, npairs;
	bool json, quiet;
	struct kx_call_filter filter;
	char *const *paths;
};

/* in the order of enum form, without its first */
static const char *const form_words[] = { "archive", "perfetto", "chrome", NULL };

static const struct {
	const char *suffix, *output, *open;
} forms[] = {
	[FORM_ARCHIVE] = { ".tar", "merged.tar",
			   "open it in https://ui.perfetto.dev (Perfetto 58 or later)" },
	[FORM_PERFETTO] = { ".pftrace", "merged.pftrace", "open it in https://ui.perfetto.dev" },
	[FORM_CHROME] = { ".json", "merged.json",
			  "open it in https://ui.perfetto.dev or chrome://tracing" },
};

static const struct kx_option options[] = {
	{ .name = "output",
	  .short_name = 'o',
	  .kind = KX_OPTION_TEXT,
	  .argument = "OUT",
	  KX_FIELD(struct arguments, output),
	  .help = "default merged.tar, or as the format has it; its suffix (.tar, .pftrace, .json) "
		  "chooses the format if -f does not",
	  .manual = "The output, by default merged with the format's suffix. The suffix (.tar, "
		    ".pftrace, .json) chooses the format "
		    "if \\fB\\-f\\fR does not. Output files are written atomically." },
	{ .name = "format",
	  .short_name = 'f',
	  .kind = KX_OPTION_CHOICE,
	  .argument = "FORMAT",
	  .words = form_words,
	  .constant = FORM_ARCHIVE,
	  KX_FIELD(struct arguments, form),
	  .help = "archive (default): a tar of Perfetto traces; perfetto, chrome: one file, hosts "
		  "as groups of processes",
	  .manual = "archive (default): a tar file with each trace in Perfetto's format and a "
		    "manifest that names hosts and relates "
		    "their clocks, for Perfetto 58 or later. perfetto and chrome: one file in "
		    "which hosts are groups of processes, "
		    "for any viewer of these formats; see FORMATS." },
	{ .name = "offset",
	  .kind = KX_OPTION_TEXTS,
	  .argument = "HOST=TIME",
	  KX_LIST(struct arguments, offsets, noffsets),
	  .help = "a host's events were later than its clock says, by TIME: web1=250ms, "
		  "web1=-20us; may be repeated",
	  .manual = "Events of HOST were later than its clock says, by TIME, as in web1=250ms; "
		    "earlier with a minus, as in "
		    "web1=-20us. HOST is a host's name as this command prints it, or the path of a "
		    "trace. May be repeated." },
	{ .name = "pair",
	  .kind = KX_OPTION_TEXTS,
	  .argument = "CLIENT=SERVER",
	  KX_LIST(struct arguments, pairs, npairs),
	  .help = "each call of function CLIENT on one host waits for one of SERVER on another: "
		  "moves the server so that its calls "
		  "are in the client's, if they are not; may be repeated",
	  .manual = "Each call of CLIENT on one host sends a request and waits for the answer, "
		    "which a call of SERVER on another host "
		    "makes: that is within the client's call. If it is not by the clocks, the "
		    "server is moved to the middle of the "
		    "interval in which all its calls are; the interval is printed in any case. "
		    "Both are a [MODULE:]GLOB. May be "
		    "repeated, for other servers. See CLOCKS." },
	{ .name = "json",
	  .kind = KX_OPTION_FLAG,
	  KX_FIELD(struct arguments, json),
	  .help = "say what was done as one JSON object on standard output" },
	{ .name = "quiet",
	  .short_name = 'q',
	  .kind = KX_OPTION_FLAG,
	  KX_FIELD(struct arguments, quiet),
	  .help = "print errors only" },
	KX_HELP_OPTION,
	{ 0 },
};

static const struct kx_option_group groups[] = {
	{ .options = options },
	{ .heading = "What to merge (default: everything; --time counts from the first record of "
		     "all traces)",
	  .options = kx_filter_options,
	  .offset = offsetof(struct arguments, filter) },
	{ 0 },
};

static const struct kx_example examples[] = {
	{ "kxray merge web1.xray db1.xray -o day.tar",
	  "two hosts on one time line, for https://ui.perfetto.dev" },
	{ "kxray merge --pair send_query=handle_query web1.xray db1.xray",
	  "db1's clock corrected by calls of both" },
	{ "kxray merge -f chrome --time 10..12 web1.xray db1.xray",
	  "two seconds of it, in one JSON file" },
	{ 0 },
};

const struct kx_command kx_command_merge = {
	.name = NAME,
	.summary = "put traces of several hosts or sessions on one time line",
	.usage = "Usage: kxray merge [OPTION...] A B...\n"
		 "Puts traces of several hosts, or several recordings of one, on one time line, in "
		 "one output. Hosts are\n"
		 "aligned by their CLOCK_REALTIME, of which each trace has snapshots. A, B... are "
		 "traces of kxray record.\n",
	.groups = groups,
	.notes = "How exact that is depends on how well the hosts' clocks are synchronized (NTP, "
		 "PTP), which a trace does\n"
		 "not know; --offset and --pair correct them.\n",
	.examples = examples,
	.operands = KX_OPERANDS_LIST,
	.operand = offsetof(struct arguments, paths),
	.run = kx_cmd_merge,
};

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && !strcmp(text + n - m, end);
}

static int check(struct arguments *a, struct kx_err *err)
{
	size_t n = 0;

	while (a->paths && a->paths[n])
		n++;
	if (n < 2)
		return kx_err_set(
			err, -EINVAL,
			"name two traces or more: 'kxray merge web1.xray db1.xray -o day.tar'%s",
			n ? "; one alone is for 'kxray export'" : "");
	if (n > KX_MAX_MERGED)
		return kx_err_set(err, -EINVAL, "%zu traces are too many: at most %d can be merged",
				  n, KX_MAX_MERGED);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(a->paths[i], "-"))
			return kx_err_set(err, -EINVAL,
					  "a trace from standard input cannot be merged: each is "
					  "read twice, name a file");
	for (int f = FORM_ARCHIVE; a->output && !a->form && f <= FORM_CHROME; f++)
		if (ends_with(a->output, forms[f].suffix))
			a->form = (enum form)f;
	if (!a->form)
		a->form = FORM_ARCHIVE;
	if (!a->output)
		a->output = forms[a->form].output;
	if (!strcmp(a->output, "-"))
		return kx_err_set(err, -EINVAL,
				  "the output cannot be standard output: name a file with -o");
	return 0;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int check_output(const struct arguments *a, struct kx_err *err)
{
	struct stat st;

	for (size_t i = 0; a->paths[i]; i++)
		if (same_file(a->paths[i], a->output))
			return kx_err_set(err, -EINVAL,
					  "'%s' is one of the traces; name another output with -o",
					  a->output);
	if (!stat(a->output, &st) && !S_ISREG(st.st_mode))
		return kx_err_set(err, -EINVAL,
				  "'%s' is not a regular file; name another output with -o",
				  a->output);
	return 0;
}

/* What was done */

static void print_host(const struct kx_merge_traces *t, size_t i)
{
	const struct kx_merge_host *h = &t->hosts[i];

	if (h->stepped)
		kx_print(stderr,
			 "kxray " NAME ": %s: CLOCK_REALTIME was set by %.3f ms while it recorded; "
				       "the middle is taken\n",
			 h->machine, (double)h->stepped / 1e6);
	if (h->snapshots.n == 1)
		kx_print(stderr,
			 "kxray " NAME ": %s: its map has the clocks of the start only, as of a recording that did not end in "
			 "order: the later in it, the less exact its times are\n",
			 h->path);
	if (h->same != i)
		kx_print(stderr,
			 "kxray " NAME
			 ": '%s' and '%s' are of the same host and boot, %s: they have one clock\n",
			 t->hosts[h->same].path, h->path, h->machine);
	for (size_t k = 0; k < i && h->same == i; k++)
		if (t->hosts[k].same == k && !strcmp(t->hosts[k].host, h->host)) {
			kx_print(stderr,
				 "kxray " NAME ": '%s' is of %s, too, but of another boot or "
					       "machine than '%s': it is called '%s'\n",
				 h->path, h->host, t->hosts[k].path, h->machine);
			break;
		}
}

static void print_bound(const struct kx_merge_traces *t, const char *pair,
			const struct kx_merge_bound *b)
{
	const char *server = t->hosts[b->server].machine, *client = t->hosts[b->client].machine;

	if (b->offset)
		kx_print(stderr,
			 "kxray " NAME ": %s: moved by %.6f ms against %s, exact to %.6f ms: %zu "
				       "pairs of calls (%s) allow %.6f to %.6f ms\n",
			 server, (double)b->offset / 1e6, client,
			 (double)(b->most - b->least) / 2e6, b->calls, pair, (double)b->least / 1e6,
			 (double)b->most / 1e6);
	else
		kx_print(stderr,
			 "kxray " NAME ": %s: not moved against %s: %zu pairs of calls (%s) agree "
				       "with the clocks, and allow %.6f to %.6f ms\n",
			 server, client, b->calls, pair, (double)b->least / 1e6,
			 (double)b->most / 1e6);
}

static void print_end(const struct arguments *a, const struct kx_merge_traces *t)
{
	size_t machines = 0;
	int64_t error = 0;

	for (size_t i = 0; i < t->n; i++) {
		machines += t->hosts[i].same == i;
		error = t->hosts[i].error > error ? t->hosts[i].error : error;
		if (!t->calls[i])
			kx_print(stderr, "kxray " NAME ": %s: no calls%s\n", t->hosts[i].path,
				 kx_filter_is_set(&a->filter) ? " left after filtering"
							      : " in the trace");
	}
	kx_print(stderr,
		 "kxray " NAME ": %zu traces of %zu host%s written to %s, aligned by "
			       "CLOCK_REALTIME (read to within %.3f us); %s\n",
		 t->n, machines, machines == 1 ? "" : "s", a->output, (double)error / 1e3,
		 forms[a->form].open);
}

/* A long host's name is cut, perhaps in the middle of a character. */
static json_t *machine_json(const struct kx_merge_traces *t, size_t i)
{
	return kx_json_text(t->hosts[i].machine, sizeof(t->hosts[i].machine));
}

static json_t *trace_json(const struct kx_merge_traces *t, size_t i)
{
	const struct kx_merge_host *h = &t->hosts[i];
	json_t *j = json_pack("{s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:I}", "path",
			      kx_json_text(h->path, strlen(h->path)), "host",
			      kx_json_text(h->host, sizeof(h->host)), "machine",
			      machine_json(t, i), "boot_id",
			      kx_json_text(h->boot_id, sizeof(h->boot_id)), "calls",
			      (json_int_t)t->calls[i], "shift_ns",
			      (json_int_t)kx_merge_hosts_shift(t->hosts, t->n, i), "offset_ns",
			      (json_int_t)h->offset, "error_ns", (json_int_t)h->error,
			      "realtime_set_ns", (json_int_t)h->stepped);

	return j;
}

static int print_json(const struct arguments *a, const struct kx_merge_traces *t,
		      const struct kx_merge_bound *bounds, struct kx_err *err)
{
	json_t *traces = json_array(), *pairs = json_array(), *all;
	int r = 0;

	for (size_t i = 0; i < t->n; i++)
		r |= json_array_append_new(traces, trace_json(t, i));
	for (size_t i = 0; i < a->npairs; i++)
		r |= json_array_append_new(pairs,
					   json_pack("{s:o,s:o,s:o,s:I,s:I,s:I,s:I}", "pair",
						     kx_json_text(a->pairs[i], strlen(a->pairs[i])),
						     "client", machine_json(t, bounds[i].client),
						     "server", machine_json(t, bounds[i].server),
						     "calls", (json_int_t)bounds[i].calls,
						     "least_ns", (json_int_t)bounds[i].least,
						     "most_ns", (json_int_t)bounds[i].most,
						     "offset_ns", (json_int_t)bounds[i].offset));
	all = json_pack("{s:i,s:o,s:s,s:i,s:o,s:o}", "schema", KX_JSON_SCHEMA, "output",
			kx_json_text(a->output, strlen(a->output)), "format",
			form_words[a->form - FORM_ARCHIVE], "reference",
			(int)kx_merge_hosts_reference(t->hosts, t->n), "traces", traces, "pairs",
			pairs);
	if (r || !all || json_dumpf(all, stdout, JSON_COMPACT) || puts("") < 0)
		r = kx_err_set(err, -EIO, "the summary cannot be written to standard output");
	json_decref(all);
	return r;
}

/* Offsets that are given come first: pairs are compared with them. */
static int align(const struct arguments *a, struct kx_merge_traces *t,
		 struct kx_merge_bound *bounds, struct kx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < t->n && !a->quiet; i++)
		print_host(t, i);
	for (size_t i = 0; i < a->noffsets && !r; i++)
		r = kx_merge_hosts_offset(t->hosts, t->n, a->offsets[i], err);
	for (size_t i = 0; i < a->npairs && !r; i++) {
		r = kx_merge_traces_pair(t, a->pairs[i], &bounds[i], err);
		for (size_t k = 0; k < i && !r; k++)
			if (bounds[k].server == bounds[i].server)
				r = kx_err_set(err, -EINVAL,
					       "--pair %s: %s is moved by another pair already",
					       a->pairs[i], t->hosts[bounds[i].server].machine);
		if (!r && !a->quiet)
			print_bound(t, a->pairs[i], &bounds[i]);
	}
	return r ? r : kx_merge_traces_place(t, err);
}

static int write_output(const struct arguments *a, struct kx_merge_traces *t, struct kx_err *err)
{
	const struct kx_merge m = {
		.hosts = t->hosts, .n = t->n, .write = kx_merge_traces_write, .ctx = t
	};
	const struct kx_exporter *format = NULL;
	struct kx_export_output output = { .fd = -1 };
	int r = kx_export_output_open(&output, a->output, false, err);

	if (!r && a->form == FORM_ARCHIVE)
		r = kx_merge_write_archive(&m, output.fd, err);
	else if (!r)
		r = kx_format_find(form_words[a->form - FORM_ARCHIVE], &format, err);
	if (!r && format)
		r = kx_merge_write_shared(&m, format, output.fd, err);
	if (r == -ENOSPC || r == -EDQUOT || r == -EFBIG)
		r = kx_output_failed(a->output, r, err);
	if (!r)
		r = kx_export_output_keep(&output, err);
	kx_export_output_close(&output);
	return r;
}

static int merge(struct arguments *a, struct kx_err *err)
{
	struct kx_merge_traces t = { .filter = &a->filter, .quiet = a->quiet };
	struct kx_merge_bound *bounds = calloc(a->npairs + 1, sizeof(*bounds));
	int r = bounds ? check_output(a, err) : kx_err_set(err, -ENOMEM, "out of memory");

	if (!r)
		r = kx_merge_traces_read(&t, a->paths, err);
	if (!r)
		r = align(a, &t, bounds, err);
	if (!r)
		r = write_output(a, &t, err);
	if (!r && !a->quiet)
		print_end(a, &t);
	if (!r && a->json)
		r = print_json(a, &t, bounds, err);
	kx_merge_traces_free(&t);
	free(bounds);
	return r;
}

int kx_cmd_merge(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct kx_err err = { 0 };
	int status = KX_EXIT_DONE, r = kx_options_parse(&kx_command_merge, &a, argc, argv, &err);

	if (!r)
		r = check(&a, &err);
	if (r) {
		status = kx_cmd_end_parse(&kx_command_merge, r, &err);
	} else {
		kx_export_output_signals();
		if (merge(&a, &err))
			status = kx_cmd_fail(NAME, &err);
	}
	kx_options_free(&kx_command_merge, &a);
	return status;
}
