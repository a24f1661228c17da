// SPDX-License-Identifier: BSD-2-Clause
/* kxray export: a trace in the format of another tool. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/output.h"
#include "base/printable.h"
#include "base/shell_word.h"
#include "cmd/cmd.h"
#include "cmd/cmd_export.h"
#include "cmd/commands.h"
#include "cmd/export_formats.h"
#include "cmd/export_output.h"
#include "cmd/filter_options.h"
#include "cmd/option_help.h"
#include "cmd/option_store.h"
#include "cmd/trace_input.h"
#include "exporters/exporter.h"

#define NAME "export"
#define PROGRESS_AFTER 1.0 /* seconds */

struct arguments {
	struct kx_trace_input trace;
	const char *output;
	const struct kx_exporter *format;
	struct kx_call_filter filter;
	struct kx_format_options of_formats;
	bool list, json, help;
	bool quiet; /* only errors are printed */
};

/* One export under way. */
struct job {
	struct arguments *args;
	struct kx_trace_input *trace; /* of args */
	struct kx_calls *calls;
	json_t *own_session; /* from the trace's note, where no map has it */
	struct kx_export_output output;
	char *default_path;
	double begun; /* kx_monotonic_seconds */
	bool shown;	  /* the progress line */
	bool misused;	  /* the error is one of usage */
	bool reader_left; /* the reader closed the pipe (EPIPE) */
};

/* The command line */

/* The first -f names the format, any further one a function. */
static int set_format(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	struct arguments *a = field;
	const struct kx_exporter *format;
	const struct kx_option *function = kx_filter_options;

	(void)o;
	if (!a->format)
		return kx_format_find(value, &a->format, err);
	if (!kx_format_find(value, &format, NULL))
		return kx_err_set(err, -EINVAL, "one format at a time: '%s' is a second one", value);
	while (strcmp(function->name, "function") != 0)
		function++;
	return kx_option_store(function, &a->filter.include, &a->filter.ninclude, "-f", value, err);
}

static const struct kx_option options[] = {
	{ .name = "format", .short_name = 'f', .kind = KX_OPTION_CUSTOM, .argument = "FORMAT",
	  .set = set_format, .help = "one of those below; any further -f is a --function",
	  .manual = "The format, one of those that --list names. Any further -f is a --function." },
	{ .name = "output", .short_name = 'o', .kind = KX_OPTION_TEXT, .argument = "OUT",
	  KX_FIELD(struct arguments, output),
	  .help = "default FILE with the format's suffix; '-' for standard output",
	  .manual = "The output, by default FILE with the format's suffix; '-' is standard output. "
		    "Output files are written atomically." },
	KX_TRACE_MAP_OPTION(struct arguments, trace),
	{ .name = "list", .kind = KX_OPTION_FLAG, KX_FIELD(struct arguments, list),
	  .help = "list the formats; with --json as JSON" },
	{ .name = "json", .kind = KX_OPTION_FLAG, KX_FIELD(struct arguments, json) },
	/* not KX_HELP_OPTION: with -f FORMAT, before or after, the help is that of the format */
	{ .name = "help", .short_name = 'h', .kind = KX_OPTION_FLAG,
	  KX_FIELD(struct arguments, help), .help = "print this help; with -f FORMAT, that of the format" },
	{ 0 },
};

static const struct kx_option_group groups[] = {
	{ .options = options },
	{ .heading = "What to export (default: everything)", .options = kx_filter_options,
	  .offset = offsetof(struct arguments, filter) },
	{ 0 },
};

static const struct kx_option_group *format_groups(void)
{
	return kx_format_groups(offsetof(struct arguments, of_formats));
}

static const struct kx_example examples[] = {
	{ "kxray export -f perfetto trace.xray",
	  "for https://ui.perfetto.dev, into trace.pftrace" },
	{ "kxray export -f perfetto --time 1.5..2 --min-duration 10us trace.xray",
	  "half a second of it, without short calls" },
	{ "kxray export -f folded -o - trace.xray | flamegraph.pl > flames.svg",
	  "a flame graph" },
	{ "kxray export -f csv -o - trace.xray | sqlite3 calls.db '.import --csv /dev/stdin calls'",
	  "a table in sqlite" },
	{ "kxray export -f csv --csv-table functions --csv-columns +host trace.xray",
	  "the traced functions, into trace.functions.csv (man kxray-formats: DATABASES)" },
	{ 0 },
};

const struct kx_command kx_command_export = {
	.name = NAME,
	.summary = "convert a trace to the format of another tool",
	.usage = "Usage: kxray export -f FORMAT [-o OUT] [OPTION...] FILE\n"
		 "       kxray export --list [--json]\n"
		 "Converts a trace. FILE is any XRay trace; '-' is standard input.\n",
	.groups = groups,
	.more_groups = format_groups,
	.examples = examples,
	.operands = KX_OPERANDS_ONE,
	.operand = offsetof(struct arguments, trace.path),
	.run = kx_cmd_export,
};

/* With @only, that format's options and no other's. */
static void print_help(const struct kx_exporter *only)
{
	struct kx_command c = kx_command_export;

	c.more_groups = NULL;
	c.examples = NULL;
	kx_option_help_print(&c, stdout);
	printf("\nFormats:\n");
	for (size_t i = 0; kx_exporters[i]; i++)
		if (!only || only == kx_exporters[i])
			printf("  %-11s %s\n", kx_exporters[i]->name, kx_exporters[i]->summary);
	for (const struct kx_option_group *g = format_groups(); g->options; g++)
		if (!only || !strcmp(strrchr(g->heading, ' ') + 1, only->name))
			kx_option_help_print_group(&kx_command_export, g, stdout);
	kx_option_help_print_examples(&kx_command_export, stdout);
}

static const char *option_value(const struct kx_export *x, const char *name)
{
	return kx_format_option(x->options_ctx, name);
}

static bool appends(const struct arguments *a)
{
	return a->format->append_option && kx_format_option(&a->of_formats, a->format->append_option);
}

static int check_arguments(const struct arguments *a, struct kx_err *err)
{
	int r;

	if (a->json)
		return kx_err_set(err, -EINVAL, "--json goes with --list");
	if (!a->format)
		return kx_err_set(err, -EINVAL,
				  "name a format with -f; 'kxray export --list' lists them");
	r = kx_format_check(&a->of_formats, a->format, err);
	if (!r)
		r = kx_trace_input_check(&a->trace, err);
	if (!r && appends(a) && a->output && !strcmp(a->output, "-"))
		r = kx_err_set(err, -EINVAL, "--%s needs a file to add to: name it with -o",
			       a->format->append_option);
	return r;
}

/* The part of the trace that a format writes alone; NULL: it was not asked to. */
static const char *part_of(const struct arguments *a)
{
	return a->format->part_option ? kx_format_option(&a->of_formats, a->format->part_option) : NULL;
}

char *kx_export_default_path(const char *trace, const char *part, const struct kx_exporter *format)
{
	size_t len = kx_output_stem(trace);
	char *path = NULL;

	/* A value with a slash or the like is none: the format refuses it later, with the right message. */
	if (part && (!*part || part[strspn(part, "abcdefghijklmnopqrstuvwxyz")]))
		part = NULL;
	if (len > 5 && !strncmp(trace + len - 5, ".xray", 5))
		len -= 5;
	if (asprintf(&path, "%.*s%s%s%s", (int)len, trace, part ? "." : "", part ? part : "", format->suffix) < 0)
		return NULL;
	return path;
}

/* Running */

static void clear_progress(struct job *j)
{
	if (j->shown)
		fputs("\r\033[K", stderr);
	j->shown = false;
}

static void show_progress(void *ctx, uint64_t done, uint64_t all)
{
	struct job *j = ctx;
	double seconds = kx_monotonic_seconds() - j->begun;
	double events = 2.0 * (double)kx_calls_get_totals(j->calls)->calls;

	if (done >= all)
		clear_progress(j);
	if (done >= all || seconds < PROGRESS_AFTER)
		return;
	fprintf(stderr, "\rkxray export: %3.0f %%, %.1f million events/s ",
		100.0 * (double)done / (double)all, events / seconds / 1e6);
	j->shown = true;
}

static void print_notice(const struct kx_export *x, const char *text)
{
	const struct job *j = x->progress_ctx;

	clear_progress(x->progress_ctx);
	if (!j->args->quiet)
		kx_print(stderr, "kxray export: %s\n", text);
}

/* The format's clause about what to do with the output at @path, as a shell can take it; NULL: there is none. */
static char *hint_of(const struct kx_exporter *format, const char *path)
{
	const char *at = format->open_hint, *file;
	char *text = NULL, *word = at ? kx_shell_word(path) : NULL;
	size_t size;
	FILE *to = word ? open_memstream(&text, &size) : NULL;

	for (; to && (file = strstr(at, "FILE")); at = file + strlen("FILE"))
		fprintf(to, "%.*s%s", (int)(file - at), at, word);
	if (to)
		fputs(at, to);
	free(word);
	if (!to || !fclose(to))
		return text;
	free(text);
	return NULL;
}

/* Where to open the output, if it is a file. */
static void print_end(const struct job *j, uint64_t calls)
{
	const char *path = j->default_path ? j->default_path : j->args->output;
	char *hint = j->output.is_temporary ? hint_of(j->args->format, path) : NULL;

	if (j->default_path && part_of(j->args))
		kx_print(stderr, "kxray export: written to %s\n", path);
	else if (j->default_path)
		kx_print(stderr, "kxray export: %" PRIu64 " calls written to %s%s%s\n", calls, path, hint ? "; " : "",
			 hint ? hint : "");
	else if (hint)
		kx_print(stderr, "kxray export: %s: %s\n", path, hint);
	free(hint);
}

static void warn_after(const struct job *j)
{
	const struct kx_calls_totals *t = kx_calls_get_totals(j->calls);
	const char *pattern;

	/* Not each part is made from calls. */
	if (part_of(j->args)) {
		print_end(j, 0);
		return;
	}
	for (size_t i = 0; (pattern = kx_calls_unmatched(j->calls, i)); i++)
		kx_print(stderr, "kxray export: no function of the trace matches '%s'\n", pattern);
	if (!t->calls)
		kx_print(stderr, "kxray export: %s: no calls%s\n", j->trace->path,
			 kx_filter_is_set(&j->args->filter) ? " left after filtering"
							    : " in the trace");
	print_end(j, t->calls);
}

static int run_format(struct job *j, struct kx_err *err)
{
	static struct kx_text_out out;
	const struct arguments *a = j->args;
	struct kx_export x = {
		.file = j->trace->file, .info = kx_fdr_get_info(j->trace->file),
		.names = &j->trace->names,
		.calls = j->calls, .whole = !kx_filter_is_set(&a->filter), .raw = a->filter.raw || a->format->raw,
		.out = &out, .progress_ctx = j, .option = option_value,
		.options_ctx = &j->args->of_formats, .notice = print_notice,
	};
	int r, written;

	x.out_path = j->output.is_temporary ? j->output.path : NULL;
	x.tsc_hz = x.info->tsc_hz ? x.info->tsc_hz : 1000000000;
	x.session = j->trace->names.has_map ? j->trace->names.map.session : NULL;
	if (!x.session)
		x.session = j->own_session;
	if (isatty(STDERR_FILENO) && !a->quiet)
		x.progress = show_progress;
	kx_text_init(&out, j->output.fd);
	r = a->format->run(&x, err);
	j->misused = r == -EINVAL;
	clear_progress(j);
	written = kx_text_flush(&out);
	/* A reader that closes the pipe (head, less) is no failure. */
	j->reader_left = written == -EPIPE && !j->output.is_temporary;
	if (j->reader_left)
		return 0;
	if (written && j->output.path)
		return kx_output_failed(j->output.path, written, err);
	if (written)
		return kx_err_set(err, written, "standard output cannot be written: %s", strerror(-written));
	return r;
}

static int open_trace(struct job *j, struct kx_err *err)
{
	struct kx_call_filter filter = j->args->filter;
	struct kx_trace_input *t = j->trace;
	const char *session;
	size_t size;
	int r = kx_trace_input_open(t, false, err);

	if (r)
		return r;
	if (!j->args->quiet)
		kx_trace_input_warn(t, NAME, "exported");
	filter.raw |= j->args->format->raw;
	r = kx_calls_new(t->file, &t->names, &filter, &j->calls, err);
	j->misused = r == -EINVAL;
	if (r)
		return r;
	session = kx_calls_session(j->calls, &size);
	if (session)
		j->own_session = json_loadb(session, size, JSON_DISABLE_EOF_CHECK, NULL);
	return 0;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
	       S_ISREG(x.st_mode);
}

/* Whether the output would replace the trace or its map while they are read. */
static bool is_input(const struct arguments *a, const char *path)
{
	char *map;
	bool same;

	if (!path || !strcmp(path, "-"))
		return false;
	same = same_file(path, a->trace.path) || (a->trace.map && same_file(path, a->trace.map));
	map = kx_output_map_path(a->trace.path);
	same |= map && same_file(path, map);
	free(map);
	return same;
}

static int open_output(struct job *j, struct kx_err *err)
{
	const struct arguments *a = j->args;
	const char *path = a->output;

	if (!path && strcmp(a->trace.path, "-")) {
		path = j->default_path = kx_export_default_path(a->trace.path, part_of(a), a->format);
		if (!path)
			return kx_err_set(err, -ENOMEM, "out of memory");
	}
	if (is_input(a, path)) {
		j->misused = true;
		return kx_err_set(err, -EINVAL,
				  "'%s' is the input; name another file with -o", path);
	}
	return kx_export_output_open(&j->output, path, appends(a), err);
}

/* More operands than the trace: a format without -f, an output without -o. */
static int explain_operands(const struct arguments *a, int argc, char **argv, struct kx_err *err)
{
	const struct kx_exporter *format;
	struct kx_err why = *err;

	if (strncmp(err->text, "unexpected argument", strlen("unexpected argument")))
		return -EINVAL;
	for (int i = 1; i < argc && !a->format; i++)
		if (!kx_format_find(argv[i], &format, NULL))
			return kx_err_set(err, -EINVAL, "a format is named with -f: kxray export -f %s FILE", format->name);
	return kx_err_set(err, -EINVAL, "%.900s; an output is named with -o", why.text);
}

static int export_file(struct arguments *a)
{
	struct job j = { .args = a, .trace = &a->trace, .output = { .fd = -1 } };
	struct kx_err err = { 0 };
	int r = open_trace(&j, &err);

	j.begun = kx_monotonic_seconds();
	if (!r)
		r = open_output(&j, &err);
	if (!r)
		r = run_format(&j, &err);
	if (!r)
		r = kx_export_output_keep(&j.output, &err);
	if (!r && !j.reader_left && !a->quiet)
		warn_after(&j);
	kx_export_output_close(&j.output);
	json_decref(j.own_session);
	kx_calls_free(j.calls);
	kx_trace_input_close(j.trace);
	free(j.default_path);
	if (!r)
		return KX_EXIT_DONE;
	return j.misused ? kx_cmd_usage(NAME, "%s", err.text) : kx_cmd_fail(NAME, &err);
}

int kx_export_trace(const char *trace, const struct kx_exporter *format, bool quiet)
{
	struct arguments a = { .trace.path = trace, .format = format, .quiet = quiet };

	kx_export_output_signals();
	return export_file(&a);
}

int kx_cmd_export(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct kx_err err = { 0 };
	int status = KX_EXIT_DONE, r = kx_options_parse(&kx_command_export, &a, argc, argv, &err);

	if (!r && a.help) {
		print_help(a.format);
	} else if (!r && a.list) {
		if (kx_formats_print(a.json, stdout, &err))
			status = kx_cmd_fail(NAME, &err);
	} else {
		r = r == -EINVAL ? explain_operands(&a, argc, argv, &err) : r ? r : check_arguments(&a, &err);
		signal(SIGPIPE, SIG_IGN);
		kx_export_output_signals();
		kx_cmd_allow_downloads(NAME); /* for autofdo's lines */
		status = r ? kx_cmd_end_parse(&kx_command_export, r, &err) : export_file(&a);
	}
	kx_options_free(&kx_command_export, &a);
	return status;
}
