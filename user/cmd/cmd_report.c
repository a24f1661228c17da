// SPDX-License-Identifier: BSD-2-Clause
/* kxray report: the table of functions. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "trace/fdr_reader.h"
#include "cmd/filter_options.h"
#include "report/report.h"
#include "report/report_view.h"
#include "base/text_out.h"
#include "trace/symbolizer.h"

#define NAME "report"

static const char usage[] =
	"Usage: kxray report [OPTION...] FILE\n"
	"Shows a trace as a table of functions. FILE is any XRay trace, '-' standard input.\n"
	"\n"
	"  -m, --map MAP       names functions: kxray's map, or a binary built with XRay;\n"
	"                      default FILE.map\n"
	"  -s, --sort KEY      total (default), self, on-cpu, off-cpu, wait, count, min, p50, p90, p99,\n"
	"                      max, open or name\n"
	"  -n, --limit N       the first N functions only\n"
	"      --by-process    a table for each process, that of the largest sum first\n"
	"      --fail-on-loss  exit status 3 if the recorder lost events\n"
	"      --json          one JSON object on standard output\n"
	"  -h, --help          this text\n"
	"\n"
	"What to show (default: everything; -f is short for --function):\n";

static const char usage_end[] =
	"\n"
	"Times are from entry to exit. In 'total' a recursive function counts once, 'self' is the\n"
	"time without traced callees, 'open' are calls that had not ended when the trace did.\n"
	"Of a recording with --sched, 'on-cpu' and 'off-cpu' are the parts of total in which the thread\n"
	"was on a CPU and was not; 'wait' is the part of off-cpu in which it could have run.\n";

struct arguments {
	const char *file, *map;
	struct kx_report_view view;
	bool fail_on_loss;
	struct kx_filter_options filter;
};

static int parse_sort(const char *text, enum kx_report_key *out)
{
	int key = kx_report_key(text);

	if (key < 0)
		return kx_cmd_usage(NAME, "--sort is total, self, on-cpu, off-cpu, wait, count, min, "
				    "p50, p90, p99, max, open or name, not '%s'", text);
	*out = (enum kx_report_key)key;
	return 0;
}

static int parse_limit(const char *text, size_t *out)
{
	char *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	if (end == text || *end || errno || !*out || text[0] == '-')
		return kx_cmd_usage(NAME, "--limit takes a number above 0, not '%s'", text);
	return 0;
}

/* 0 to go on, -1 if the help was asked for, else the exit status. */
static int parse_arguments(int argc, char **argv, struct arguments *a)
{
	enum { OPT_JSON = 256, OPT_FAIL, OPT_BY_PROCESS };
	static const struct option options[] = {
		{ "map", required_argument, NULL, 'm' },
		{ "sort", required_argument, NULL, 's' },
		{ "limit", required_argument, NULL, 'n' },
		{ "fail-on-loss", no_argument, NULL, OPT_FAIL },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "by-process", no_argument, NULL, OPT_BY_PROCESS },
		{ "help", no_argument, NULL, 'h' },
		KX_FILTER_LONG_OPTIONS,
		{ 0 },
	};
	struct kx_err err = { 0 };
	int c, rc = 0;

	optind = 0;
	opterr = 0;
	while (!rc && (c = getopt_long(argc, argv, ":m:s:n:f:x:h", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			a->map = optarg;
			break;
		case 's':
			rc = parse_sort(optarg, &a->view.sort);
			break;
		case 'n':
			rc = parse_limit(optarg, &a->view.limit);
			break;
		case OPT_FAIL:
			a->fail_on_loss = true;
			break;
		case OPT_BY_PROCESS:
			a->view.by_process = true;
			break;
		case OPT_JSON:
			a->view.json = true;
			break;
		case 'h':
			return -1;
		case ':':
			return kx_cmd_usage(NAME, "option '%s' needs a value", argv[optind - 1]);
		case '?':
			return kx_cmd_usage(NAME, "there is no option '%s'", argv[optind - 1]);
		default:
			c = c == 'f' ? KX_FILTER_FUNCTION : c == 'x' ? KX_FILTER_EXCLUDE : c;
			if (kx_filter_option(&a->filter, c, optarg, &err))
				return kx_cmd_usage(NAME, "%s", err.text);
		}
	}
	if (rc)
		return rc;
	if (optind >= argc)
		return kx_cmd_usage(NAME, "name a trace file, or '-' for standard input");
	a->file = argv[optind++];
	if (optind < argc)
		return kx_cmd_usage(NAME, "one trace at a time: '%s' is too much", argv[optind]);
	return 0;
}

static void warn(const struct kx_fdr_info *info, const struct kx_symbolizer *names,
		 const char *file)
{
	if (info->truncated)
		fprintf(stderr, "kxray " NAME ": %s: the trace ends inside a buffer, as after an "
			"interrupted recording; all whole records up to offset %" PRIu64
			" are in the report\n", file, info->truncated_at);
	if (!names->has_map)
		fprintf(stderr, "kxray " NAME ": no map (%s%s): functions are shown by number; name "
			"one with -m (kxray's .map file, or the binary built with XRay)\n",
			strcmp(file, "-") ? file : "standard input",
			strcmp(file, "-") ? ".map does not exist" : " has none");
}

static int report_file(const struct arguments *a, bool *lost, struct kx_err *err)
{
	struct kx_report_options options = { 0 };
	struct kx_symbolizer names;
	struct kx_fdr_file *f = NULL;
	struct kx_report *report = NULL;
	struct kx_text_out out;
	const char *unmatched;
	int r = kx_fdr_open(a->file, &f, err);

	if (r)
		return r;
	r = kx_symbolizer_open(a->file, a->map, &names, err);
	if (!r)
		r = kx_symbolizer_check(&names, f, err);
	if (!r) {
		warn(kx_fdr_get_info(f), &names, a->file);
		options.session = names.has_map ? names.map.session : NULL;
		options.by_process = a->view.by_process;
		options.whole = options.by_process && !a->filter.given;
		if (a->filter.given || options.by_process)
			r = kx_calls_new(f, &names, &a->filter.filter, &options.calls, err);
	}
	if (!r)
		r = kx_report_new(f, &options, &report, err);
	for (size_t i = 0; !r && options.calls &&
			   (unmatched = kx_calls_unmatched(options.calls, i)); i++)
		fprintf(stderr, "kxray " NAME ": no function of the trace matches '%s'\n",
			unmatched);
	if (!r) {
		*lost = kx_report_get_totals(report)->lost > 0;
		kx_text_init(&out, STDOUT_FILENO);
		r = kx_report_print(report, &a->view, kx_fdr_get_info(f), &names, &out, err);
	}
	kx_report_free(report);
	kx_calls_free(options.calls);
	kx_symbolizer_free(&names);
	kx_fdr_close(f);
	return r;
}

int kx_cmd_report(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct kx_err err = { 0 };
	bool lost = false;
	int rc = parse_arguments(argc, argv, &a);

	if (rc < 0) {
		fputs(usage, stdout);
		fputs(kx_filter_help, stdout);
		fputs(usage_end, stdout);
		rc = KX_EXIT_DONE;
	} else if (!rc) {
		signal(SIGPIPE, SIG_IGN);
		if (report_file(&a, &lost, &err))
			rc = kx_cmd_fail(NAME, &err);
		else if (lost && a.fail_on_loss)
			rc = KX_EXIT_LOSS;
	}
	kx_filter_options_free(&a.filter);
	return rc;
}
