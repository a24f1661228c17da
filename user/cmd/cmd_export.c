// SPDX-License-Identifier: BSD-2-Clause
/* kxray export: a trace in the format of another tool. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/export_output.h"
#include "exporters/exporter.h"
#include "cmd/filter_options.h"

#define NAME "export"
#define MAX_OPTIONS 96 /* of all formats together */
#define PROGRESS_AFTER 1.0 /* seconds */

static const char usage[] =
	"Usage: kxray export -f FORMAT [-o OUT] [OPTION...] FILE\n"
	"       kxray export --list [--json]\n"
	"Converts a trace. FILE is any XRay trace, '-' standard input.\n"
	"\n"
	"  -f, --format FORMAT       one of those below; any further -f is a --function\n"
	"  -o, --output OUT          default FILE with the format's suffix; '-' for standard output\n"
	"  -m, --map MAP             names functions: kxray's map, or a binary built with XRay;\n"
	"                            default FILE.map\n"
	"      --list                the formats; with --json as JSON\n"
	"  -h, --help                this text\n"
	"\n"
	"What to export (default: everything):\n";

enum { OPT_LIST = 256, OPT_JSON, OPT_FORMAT_FIRST = 1024 };

/* An option of a format, as given on the command line. */
struct given {
	const struct kx_export_option *option;
	const char *value;
};

struct arguments {
	const char *file, *map, *output;
	const struct kx_exporter *format;
	struct kx_filter_options filter;
	struct given given[MAX_OPTIONS];
	size_t ngiven;
	bool list, json, help;
};

/* One export under way. */
struct job {
	const struct arguments *args;
	struct kx_fdr_file *file;
	struct kx_symbolizer names;
	struct kx_calls *calls;
	json_t *own_session; /* from the trace's note, where no map has it */
	struct kx_export_output output;
	char *default_path;
	struct timespec begun;
	bool shown;          /* the progress line */
	bool misused;        /* the error is one of usage */
	bool left;           /* who reads the output has seen enough */
};

/* Formats */

static const struct kx_exporter *find_format(const char *name)
{
	for (size_t i = 0; kx_exporters[i]; i++)
		if (!strcmp(kx_exporters[i]->name, name))
			return kx_exporters[i];
	return NULL;
}

/* Letters to add, take away or replace; names are short. */
static size_t distance(const char *a, const char *b)
{
	size_t row[64], n = strlen(b);

	if (n >= sizeof(row) / sizeof(row[0]))
		return n;
	for (size_t k = 0; k <= n; k++)
		row[k] = k;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t k = 1; k <= n; k++) {
			size_t best = diagonal + (a[i - 1] != b[k - 1]);

			diagonal = row[k];
			if (row[k] + 1 < best)
				best = row[k] + 1;
			if (row[k - 1] + 1 < best)
				best = row[k - 1] + 1;
			row[k] = best;
		}
	}
	return row[n];
}

static int unknown_format(const char *name)
{
	char near[256] = "";
	size_t len = strlen(name);

	for (size_t i = 0; kx_exporters[i]; i++) {
		const char *known = kx_exporters[i]->name;

		if (distance(name, known) > 2 && (len < 3 || (!strstr(known, name) && !strstr(name, known))))
			continue;
		if (strlen(near) + strlen(known) + 8 < sizeof(near))
			sprintf(near + strlen(near), "%s'%s'", *near ? " or " : "", known);
	}
	if (*near)
		return kx_cmd_usage(NAME, "there is no format '%s'; is it %s?", name, near);
	return kx_cmd_usage(NAME, "there is no format '%s'; 'kxray export --list' names them", name);
}

static void print_format_options(const struct kx_exporter *format)
{
	for (const struct kx_export_option *o = format->options; o && o->name; o++) {
		int n = printf("      --%s%s%s", o->name, o->argument ? " " : "",
			       o->argument ? o->argument : "");

		printf("%*s%s\n", n < 30 ? 32 - n : 2, "", o->help);
	}
}

static void print_help(const struct kx_exporter *only)
{
	fputs(usage, stdout);
	fputs(kx_filter_help, stdout);
	printf("\nFormats:\n");
	for (size_t i = 0; kx_exporters[i]; i++)
		if (!only || only == kx_exporters[i])
			printf("  %-11s %s\n", kx_exporters[i]->name, kx_exporters[i]->summary);
	for (size_t i = 0; kx_exporters[i]; i++) {
		if ((only && only != kx_exporters[i]) || !kx_exporters[i]->options)
			continue;
		printf("\nOptions of %s:\n", kx_exporters[i]->name);
		print_format_options(kx_exporters[i]);
	}
}

static json_t *options_json(const struct kx_exporter *format)
{
	json_t *list = json_array();

	for (const struct kx_export_option *o = format->options; o && o->name; o++)
		json_array_append_new(list, json_pack("{s:s,s:s?,s:s}", "name", o->name, "argument",
						      o->argument, "help", o->help));
	return list;
}

static int print_list(bool json)
{
	json_t *list = json_array();

	for (size_t i = 0; kx_exporters[i]; i++) {
		const struct kx_exporter *e = kx_exporters[i];

		if (json)
			json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:o}", "name", e->name,
							      "suffix", e->suffix, "summary",
							      e->summary, "options",
							      options_json(e)));
		else
			printf("%-11s %-17s %s\n", e->name, e->suffix, e->summary);
	}
	if (json) {
		json_dumpf(list, stdout, JSON_INDENT(1));
		putchar('\n');
	}
	json_decref(list);
	return KX_EXIT_DONE;
}

/* The command line */

/* Option number @n of all formats, each name once; NULL after the last. */
static const struct kx_export_option *nth_option(size_t n)
{
	for (size_t i = 0; kx_exporters[i]; i++)
		for (const struct kx_export_option *o = kx_exporters[i]->options; o && o->name; o++) {
			bool seen = false;

			for (size_t k = 0; k < i && !seen; k++)
				for (const struct kx_export_option *p = kx_exporters[k]->options;
				     p && p->name; p++)
					seen |= !strcmp(p->name, o->name);
			if (!seen && !n--)
				return o;
		}
	return NULL;
}

static bool has_option(const struct kx_exporter *format, const char *name)
{
	for (const struct kx_export_option *o = format->options; o && o->name; o++)
		if (!strcmp(o->name, name))
			return true;
	return false;
}

static int take_format(struct arguments *a, const char *value)
{
	struct kx_err err = { 0 };

	if (a->format && find_format(value))
		return kx_cmd_usage(NAME, "one format at a time: '%s' is too much", value);
	if (a->format)
		return kx_filter_option(&a->filter, KX_FILTER_FUNCTION, value, &err) ?
			       kx_cmd_usage(NAME, "%s", err.text) : 0;
	a->format = find_format(value);
	return a->format ? 0 : unknown_format(value);
}

static int take_option(struct arguments *a, int c)
{
	struct kx_err err = { 0 };

	switch (c) {
	case 'f':
		return take_format(a, optarg);
	case 'o':
		a->output = optarg;
		return 0;
	case 'm':
		a->map = optarg;
		return 0;
	case 'h':
		a->help = true;
		return 0;
	case OPT_LIST:
		a->list = true;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case 'x':
		c = KX_FILTER_EXCLUDE;
		break;
	default:
		break;
	}
	if (c < KX_FILTER_TIME) {
		if (a->ngiven < MAX_OPTIONS)
			a->given[a->ngiven++] = (struct given){
				nth_option((size_t)(c - OPT_FORMAT_FIRST)), optarg ? optarg : "" };
		return 0;
	}
	return kx_filter_option(&a->filter, c, optarg, &err) ? kx_cmd_usage(NAME, "%s", err.text) :
							       0;
}

static int check_arguments(const struct arguments *a, int argc, char **argv)
{
	if (a->json)
		return kx_cmd_usage(NAME, "--json goes with --list");
	if (!a->format)
		return kx_cmd_usage(NAME, "name a format with -f; 'kxray export --list' names them");
	for (size_t i = 0; i < a->ngiven; i++)
		if (!has_option(a->format, a->given[i].option->name))
			return kx_cmd_usage(NAME, "format %s has no option '--%s'", a->format->name,
					    a->given[i].option->name);
	if (optind >= argc)
		return kx_cmd_usage(NAME, "name a trace file, or '-' for standard input");
	if (optind + 1 < argc)
		return kx_cmd_usage(NAME, "one trace at a time: '%s' is too much", argv[optind + 1]);
	return 0;
}

/* 0 or the exit status for wrong usage. */
static int parse_arguments(int argc, char **argv, struct arguments *a)
{
	struct option options[MAX_OPTIONS + 32] = {
		{ "format", required_argument, NULL, 'f' },
		{ "output", required_argument, NULL, 'o' },
		{ "map", required_argument, NULL, 'm' },
		{ "list", no_argument, NULL, OPT_LIST },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, 'h' },
		KX_FILTER_LONG_OPTIONS,
	};
	size_t n = 0;
	int c, rc = 0;

	while (options[n].name)
		n++;
	for (size_t i = 0; i < MAX_OPTIONS && nth_option(i); i++) {
		const struct kx_export_option *o = nth_option(i);

		options[n++] = (struct option){ o->name,
						o->argument ? required_argument : no_argument,
						NULL, OPT_FORMAT_FIRST + (int)i };
	}
	optind = 0;
	opterr = 0;
	while (!rc && (c = getopt_long(argc, argv, ":f:o:m:x:h", options, NULL)) != -1) {
		if (c == ':')
			return kx_cmd_usage(NAME, "option '%s' needs a value", argv[optind - 1]);
		if (c == '?')
			return kx_cmd_usage(NAME, "there is no option '%s'", argv[optind - 1]);
		rc = take_option(a, c);
	}
	if (rc || a->help || a->list)
		return rc;
	rc = check_arguments(a, argc, argv);
	if (!rc)
		a->file = argv[optind];
	return rc;
}

static const char *option_value(const struct kx_export *x, const char *name)
{
	const struct arguments *a = x->options_ctx;

	for (size_t i = a->ngiven; i--;)
		if (!strcmp(a->given[i].option->name, name))
			return a->given[i].value;
	return NULL;
}

static bool appends(const struct arguments *a)
{
	const struct kx_export x = { .options_ctx = (void *)(uintptr_t)a };

	return a->format->append_option && option_value(&x, a->format->append_option);
}

/* FILE without .xray, with the format's suffix. */
static char *default_path(const struct arguments *a)
{
	size_t len = strlen(a->file);
	char *path = NULL;

	if (len > 5 && !strcmp(a->file + len - 5, ".xray"))
		len -= 5;
	if (asprintf(&path, "%.*s%s", (int)len, a->file, a->format->suffix) < 0)
		return NULL;
	return path;
}

/* Running */

static double seconds_since(const struct timespec *begun)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begun->tv_sec) + (double)(now.tv_nsec - begun->tv_nsec) / 1e9;
}

static void clear_progress(struct job *j)
{
	if (j->shown)
		fputs("\r\033[K", stderr);
	j->shown = false;
}

static void show_progress(void *ctx, uint64_t done, uint64_t all)
{
	struct job *j = ctx;
	double seconds = seconds_since(&j->begun);
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
	clear_progress(x->progress_ctx);
	fprintf(stderr, "kxray export: %s\n", text);
}

static void warn_before(const struct job *j)
{
	const struct kx_fdr_info *info = kx_fdr_get_info(j->file);

	if (info->truncated)
		fprintf(stderr, "kxray export: %s: the trace ends inside a buffer, as after an "
			"interrupted recording; all whole records up to offset %" PRIu64
			" are exported\n", j->args->file, info->truncated_at);
	if (!j->names.has_map)
		fprintf(stderr, "kxray export: no map (%s%s): functions are named by number; name "
			"one with -m (kxray's .map file, or the binary built with XRay)\n",
			strcmp(j->args->file, "-") ? j->args->file : "standard input",
			strcmp(j->args->file, "-") ? ".map does not exist" : " has none");
}

static void warn_after(const struct job *j)
{
	const struct kx_calls_totals *t = kx_calls_get_totals(j->calls);
	const char *pattern;

	for (size_t i = 0; (pattern = kx_calls_unmatched(j->calls, i)); i++)
		fprintf(stderr, "kxray export: no function of the trace matches '%s'\n", pattern);
	if (!t->calls)
		fprintf(stderr, "kxray export: %s holds no call%s\n", j->args->file,
			j->args->filter.given ? " that the filters leave" : "");
	if (j->default_path)
		fprintf(stderr, "kxray export: %" PRIu64 " calls written to %s\n", t->calls, j->default_path);
}

static int run_format(struct job *j, struct kx_err *err)
{
	static struct kx_text_out out;
	const struct arguments *a = j->args;
	struct kx_export x = {
		.file = j->file, .info = kx_fdr_get_info(j->file), .names = &j->names,
		.calls = j->calls, .out = &out, .progress_ctx = j, .option = option_value,
		.options_ctx = (void *)(uintptr_t)a, .notice = print_notice,
	};
	int r, written;

	x.out_path = j->output.is_temporary ? j->output.path : NULL;
	x.tsc_hz = x.info->tsc_hz ? x.info->tsc_hz : 1000000000;
	x.session = j->names.has_map ? j->names.map.session : NULL;
	if (!x.session)
		x.session = j->own_session;
	if (isatty(STDERR_FILENO))
		x.progress = show_progress;
	kx_text_init(&out, j->output.fd);
	r = a->format->run(&x, err);
	j->misused = r == -EINVAL;
	clear_progress(j);
	written = kx_text_flush(&out);
	/* A reader that has seen enough (head, less) is no failure. */
	j->left = written == -EPIPE && !j->output.is_temporary;
	if (j->left)
		return 0;
	if (written)
		return kx_err_set(err, written, "%s cannot be written: %s",
				  j->output.path ? j->output.path : "standard output", strerror(-written));
	return r;
}

static int open_trace(struct job *j, struct kx_err *err)
{
	const struct arguments *a = j->args;
	const char *session;
	size_t size;
	int r = kx_fdr_open(a->file, &j->file, err);

	if (!r)
		r = kx_symbolizer_open(a->file, a->map, &j->names, err);
	if (!r)
		r = kx_symbolizer_check(&j->names, j->file, err);
	if (r)
		return r;
	warn_before(j);
	r = kx_calls_new(j->file, &j->names, &a->filter.filter, &j->calls, err);
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
	char *map = NULL;
	bool same;

	if (!path || !strcmp(path, "-"))
		return false;
	same = same_file(path, a->file) || (a->map && same_file(path, a->map));
	if (!same && asprintf(&map, "%s.map", a->file) >= 0)
		same = same_file(path, map);
	free(map);
	return same;
}

static int open_output(struct job *j, struct kx_err *err)
{
	const struct arguments *a = j->args;
	const char *path = a->output;

	if (!path && strcmp(a->file, "-")) {
		path = j->default_path = default_path(a);
		if (!path)
			return kx_err_set(err, -ENOMEM, "out of memory");
	}
	if (is_input(a, path)) {
		j->misused = true;
		return kx_err_set(err, -EINVAL,
				  "'%s' is what is read; name another file with -o", path);
	}
	return kx_export_output_open(&j->output, path, appends(a), err);
}

static int export_file(const struct arguments *a)
{
	struct job j = { .args = a, .output = { .fd = -1 } };
	struct kx_err err = { 0 };
	int r = open_trace(&j, &err);

	clock_gettime(CLOCK_MONOTONIC, &j.begun);
	if (!r)
		r = open_output(&j, &err);
	if (!r)
		r = run_format(&j, &err);
	if (!r)
		r = kx_export_output_keep(&j.output, &err);
	if (!r && !j.left)
		warn_after(&j);
	kx_export_output_close(&j.output);
	json_decref(j.own_session);
	kx_calls_free(j.calls);
	kx_symbolizer_free(&j.names);
	kx_fdr_close(j.file);
	free(j.default_path);
	if (!r)
		return KX_EXIT_DONE;
	return j.misused ? kx_cmd_usage(NAME, "%s", err.text) : kx_cmd_fail(NAME, &err);
}

int kx_cmd_export(int argc, char **argv)
{
	struct arguments a = { 0 };
	int rc = parse_arguments(argc, argv, &a);

	if (!rc && a.help)
		print_help(a.format);
	else if (!rc && a.list)
		rc = print_list(a.json);
	else if (!rc && appends(&a) && a.output && !strcmp(a.output, "-"))
		rc = kx_cmd_usage(NAME, "--%s needs a file to add to: name it with -o",
				  a.format->append_option);
	if (!rc && !a.help && !a.list) {
		signal(SIGPIPE, SIG_IGN);
		kx_export_output_signals();
		rc = export_file(&a);
	}
	kx_filter_options_free(&a.filter);
	return rc;
}
