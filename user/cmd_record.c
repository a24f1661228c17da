// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cmd.h"
#include "fdr.h"
#include "recording.h"

static const char help[] =
	"Usage: kxray record (-p PID[,PID...] | -- COMMAND [ARG...]) [OPTION]...\n"
	"Records function entries, exits and CPU migrations of a running, unmodified program.\n"
	"\n"
	"What to trace:\n"
	"  -p, --pid PID[,PID...]    attach to these processes\n"
	"  -- COMMAND [ARG...]       run this command and trace it from its first instruction\n"
	"  -f, --function PATTERN    trace these functions; [MODULE:]GLOB, may be repeated.\n"
	"                            Without MODULE: of the main executable. Without -f:\n"
	"                            functions of the main executable chosen by size\n"
	"  -x, --exclude PATTERN     leave these out; may be repeated\n"
	"      --exits HOW           auto (default), return, instruction or none: where exits\n"
	"                            are seen. auto never endangers the program; return aborts\n"
	"                            programs that throw through traced functions\n"
	"      --args N              record the first N integer arguments (0 to 6)\n"
	"      --callers             record each call's return address\n"
	"      --sample HZ           record where the threads are on their CPUs, so often a second\n"
	"      --max-functions N     most functions to trace (default 20000)\n"
	"\n"
	"How:\n"
	"  -o, --output FILE         the trace (default trace.xray); FILE.map goes beside it\n"
	"  -d, --duration SECONDS    stop after so long; else at Ctrl-C or the program's end\n"
	"      --fdr-version N       version of the FDR format, 1 to 5 (default 5)\n"
	"      --ring-size SIZE      ring buffer of each CPU, e.g. 4M (default: by memory)\n"
	"      --clock KIND          auto (default), kfunc, perf or ktime\n"
	"      --mechanism M         auto (default), session, multi or single\n"
	"      --fail-on-loss        exit with status 3 if any event was lost\n"
	"      --json                print the summary as one JSON object on stdout\n"
	"  -q, --quiet               print errors only\n"
	"  -h, --help                print this\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 lost events with --fail-on-loss;\n"
	"with -- COMMAND the command's own (128 + N if signal N ended it).\n";

enum {
	OPT_EXITS = 256,
	OPT_ARGS,
	OPT_CALLERS,
	OPT_SAMPLE,
	OPT_MAX_FUNCTIONS,
	OPT_FDR_VERSION,
	OPT_RING_SIZE,
	OPT_CLOCK,
	OPT_MECHANISM,
	OPT_FAIL_ON_LOSS,
	OPT_JSON,
};

static const struct option options[] = {
	{ "pid", required_argument, NULL, 'p' },
	{ "function", required_argument, NULL, 'f' },
	{ "exclude", required_argument, NULL, 'x' },
	{ "exits", required_argument, NULL, OPT_EXITS },
	{ "args", required_argument, NULL, OPT_ARGS },
	{ "callers", no_argument, NULL, OPT_CALLERS },
	{ "sample", required_argument, NULL, OPT_SAMPLE },
	{ "max-functions", required_argument, NULL, OPT_MAX_FUNCTIONS },
	{ "output", required_argument, NULL, 'o' },
	{ "duration", required_argument, NULL, 'd' },
	{ "fdr-version", required_argument, NULL, OPT_FDR_VERSION },
	{ "ring-size", required_argument, NULL, OPT_RING_SIZE },
	{ "clock", required_argument, NULL, OPT_CLOCK },
	{ "mechanism", required_argument, NULL, OPT_MECHANISM },
	{ "fail-on-loss", no_argument, NULL, OPT_FAIL_ON_LOSS },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

struct arguments {
	struct kx_recording_options o;
	const char **include, **exclude;
	pid_t *pids;
	bool json, quiet, fail_on_loss;
};

/* The index of @word in the NULL-terminated @words, or -1. */
static int choice(const char *word, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(word, words[i]) == 0)
			return i;
	return -1;
}

static bool parse_whole(const char *text, unsigned long long max, unsigned long long *out)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return !errno && !*end && *out <= max;
}

/* Bytes with an optional K, M or G. */
static bool parse_size(const char *text, uint64_t *out)
{
	char *end;
	unsigned shift = 0;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	switch (toupper((unsigned char)*end)) {
	case 'G':
		shift += 10;
		/* fall through */
	case 'M':
		shift += 10;
		/* fall through */
	case 'K':
		shift += 10;
		end++;
	}
	if (errno || *end || *out > (1ULL << 34) >> shift)
		return false;
	*out <<= shift;
	return *out > 0;
}

static bool parse_pids(struct arguments *a, const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;
	bool ok = copy != NULL;

	while (ok && (word = strsep(&rest, ","))) {
		unsigned long long pid;
		pid_t *pids = realloc(a->pids, (a->o.npids + 1) * sizeof(*pids));

		ok = pids && parse_whole(word, 1 << 22, &pid) && pid > 0;
		if (pids)
			a->pids = pids;
		for (size_t i = 0; ok && i < a->o.npids; i++)
			ok = a->pids[i] != (pid_t)pid;
		if (ok)
			a->pids[a->o.npids++] = (pid_t)pid;
	}
	free(copy);
	return ok && a->o.npids;
}

static void add_pattern(const char ***list, size_t *n, const char *pattern)
{
	const char **grown = realloc(*list, (*n + 1) * sizeof(*grown));

	if (!grown)
		abort();
	*list = grown;
	grown[(*n)++] = pattern;
}

/* 0 to go on, else kxray's exit status + 1. */
static int parse_option(struct arguments *a, int c)
{
	static const char *const exits[] = { "auto", "return", "instruction", "none", NULL };
	static const char *const clocks[] = { "auto", "kfunc", "perf", "ktime", NULL };
	static const char *const mechanisms[] = { "auto", "session", "multi", "single", NULL };
	unsigned long long n;
	char *end;
	int i;

	switch (c) {
	case 'p':
		if (!parse_pids(a, optarg))
			return 1 + kx_cmd_usage("record",
						"-p takes process ids, each once, as in -p 12,34, not "
						"'%s'; by name: -p \"$(pgrep -n NAME)\"",
						optarg);
		return 0;
	case 'f':
		add_pattern(&a->include, &a->o.select.ninclude, optarg);
		return 0;
	case 'x':
		add_pattern(&a->exclude, &a->o.select.nexclude, optarg);
		return 0;
	case 'o':
		if (strcmp(optarg, "-") == 0)
			return 1 + kx_cmd_usage("record", "a recording needs a file to write: its map "
							  "is written beside it");
		a->o.output = optarg;
		return 0;
	case 'd':
		a->o.seconds = strtod(optarg, &end);
		if (*end || end == optarg || !(a->o.seconds > 0 && a->o.seconds < 1e9))
			return 1 + kx_cmd_usage("record", "-d takes seconds above 0, not '%s'",
						optarg);
		return 0;
	case OPT_EXITS:
		i = choice(optarg, exits);
		if (i < 0)
			return 1 + kx_cmd_usage("record",
						"--exits is auto, return, instruction or none, not "
						"'%s'",
						optarg);
		a->o.select.exits = (enum kx_exits)i;
		return 0;
	case OPT_ARGS:
		if (!parse_whole(optarg, 6, &n))
			return 1 + kx_cmd_usage("record", "--args takes 0 to 6, not '%s'", optarg);
		a->o.nargs = (unsigned)n;
		return 0;
	case OPT_CALLERS:
		a->o.callers = true;
		return 0;
	case OPT_SAMPLE:
		if (!parse_whole(optarg, 100000, &n) || !n)
			return 1 + kx_cmd_usage("record",
						"--sample takes 1 to 100000 times a second, not '%s'",
						optarg);
		a->o.sample_hz = (unsigned)n;
		return 0;
	case OPT_MAX_FUNCTIONS:
		if (!parse_whole(optarg, KX_FDR_MAX_FUNC, &n) || !n)
			return 1 + kx_cmd_usage("record", "--max-functions takes 1 to %u, not '%s'",
						KX_FDR_MAX_FUNC, optarg);
		a->o.select.max_functions = (size_t)n;
		return 0;
	case OPT_FDR_VERSION:
		if (!parse_whole(optarg, KX_FDR_MAX_VERSION, &n) || n < KX_FDR_MIN_VERSION)
			return 1 + kx_cmd_usage("record", "--fdr-version takes 1 to 5, not '%s'",
						optarg);
		a->o.fdr_version = (int)n;
		return 0;
	case OPT_RING_SIZE:
		if (!parse_size(optarg, &a->o.ring_bytes))
			return 1 + kx_cmd_usage("record",
						"--ring-size takes bytes, as in 512K or 16M, not '%s'",
						optarg);
		return 0;
	case OPT_CLOCK:
		i = choice(optarg, clocks);
		if (i < 0)
			return 1 + kx_cmd_usage("record",
						"--clock is auto, kfunc, perf or ktime, not '%s'",
						optarg);
		a->o.clock = (enum kx_wire_clock)i;
		return 0;
	case OPT_MECHANISM:
		i = choice(optarg, mechanisms);
		if (i < 0)
			return 1 + kx_cmd_usage("record",
						"--mechanism is auto, session, multi or single, not "
						"'%s'",
						optarg);
		a->o.mechanism = i - 1;
		return 0;
	case OPT_FAIL_ON_LOSS:
		a->fail_on_loss = true;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case 'h':
		fputs(help, stdout);
		return 1 + KX_EXIT_DONE;
	default:
		return 1 + kx_cmd_usage("record", "see the message above");
	}
}

static int parse(struct arguments *a, int argc, char **argv)
{
	int c, status;

	optind = 1;
	while ((c = getopt_long(argc, argv, "+:ap:f:x:o:d:qh", options, NULL)) != -1) {
		if (c == ':')
			return 1 + kx_cmd_usage("record", "the option '%s' needs a value",
						argv[optind - 1]);
		if (c == 'a')
			return 1 + kx_cmd_usage("record",
						"tracing the whole system (-a) is not supported by this "
						"version; name processes with -p");
		if (c == '?')
			return 1 + kx_cmd_usage("record", "unknown option '%s'", argv[optind - 1]);
		status = parse_option(a, c);
		if (status)
			return status;
	}
	if (optind < argc) {
		if (strcmp(argv[optind - 1], "--") != 0)
			return 1 + kx_cmd_usage("record",
						"'%s' is no option: a process is named with -p PID, a "
						"function with -f, and a command to run comes after '--'",
						argv[optind]);
		a->o.command = argv + optind;
	}
	if (a->o.command && a->pids)
		return 1 + kx_cmd_usage("record", "either -p or a command after '--', not both");
	if (!a->o.command && !a->pids)
		return 1 + kx_cmd_usage("record",
					"what shall be traced? name a process with -p PID or a command "
					"after '--'");
	a->o.pids = a->pids;
	a->o.select.include = a->include;
	a->o.select.exclude = a->exclude;
	if (!a->o.output)
		a->o.output = "trace.xray";
	return 0;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* "chosen by size: a, b, c and 12 more" */
static void print_choice(const struct kx_selection *sel)
{
	size_t shown = 0;

	fprintf(stderr, "kxray: no -f given: chose %zu of %zu functions by size (%d instructions or a "
			"loop): ",
		sel->ntraced, sel->ncandidates, KX_SELECT_MIN_INSTRUCTIONS);
	for (size_t i = 0; i < sel->nfunctions && shown < 8; i++) {
		if (!sel->functions[i].traced)
			continue;
		fprintf(stderr, "%s%s", shown++ ? ", " : "", sel->functions[i].sym->pretty);
	}
	if (sel->ntraced > shown)
		fprintf(stderr, " and %zu more", sel->ntraced - shown);
	fputc('\n', stderr);
}

static void on_start(void *ctx, const struct kx_selection *sel, size_t nfunctions, size_t nprobes,
		     const char *mechanism, double attach_seconds)
{
	struct arguments *a = ctx;
	size_t stepped = 0, instruction = 0;

	if (a->quiet)
		return;
	if (sel->by_size)
		print_choice(sel);
	for (size_t i = 0; i < sel->nnotes; i++)
		fprintf(stderr, "kxray: %s\n", sel->notes[i]);
	for (size_t i = 0; i < sel->nleft_out && i < 5; i++)
		fprintf(stderr, "kxray: left out %s: %s\n", sel->left_out[i].sym->pretty,
			sel->left_out[i].reason);
	if (sel->nleft_out > 5)
		fprintf(stderr, "kxray: left out %zu more (kxray functions --left-out shows all)\n",
			sel->nleft_out - 5);
	for (size_t i = 0; i < sel->nfunctions; i++) {
		stepped += sel->functions[i].traced &&
			   sel->functions[i].plan.entry.cost == KX_COST_STEPPED;
		instruction += sel->functions[i].traced &&
			       sel->functions[i].plan.exit_kind == KX_EXITS_INSTRUCTION;
	}
	if (stepped)
		fprintf(stderr, "kxray: %zu of %zu functions have a dear entry (single-stepped); "
				"'kxray functions' shows which\n",
			stepped, nfunctions);
	if (instruction && !sel->risk.returns_harmless && a->o.select.exits == KX_EXITS_AUTO)
		fprintf(stderr, "kxray: %zu of %zu functions have dear exits (their own return "
				"instructions), because %s\n",
			instruction, nfunctions, sel->risk.reason);
	fprintf(stderr,
		"kxray: recording %zu function%s with %zu probe%s (%s, attached in %.0f ms); ends %s\n",
		nfunctions, plural(nfunctions), nprobes, plural(nprobes), mechanism,
		attach_seconds * 1e3,
		a->o.command ? "with the command" :
		a->o.npids > 1 ? "at Ctrl-C or with the processes" :
				 "at Ctrl-C or with the process");
}

static void on_notice(void *ctx, const char *text)
{
	struct arguments *a = ctx;

	if (!a->quiet)
		fprintf(stderr, "kxray: %s\n", text);
}

static void print_summary(const struct arguments *a, const struct kx_recording_result *r)
{
	static const char *const why[KX_LOSS_REASONS] = {
		"ring buffer full: try a larger --ring-size or fewer functions",
		"too many writers at once", "CPU without a ring", "clock unreadable"
	};
	const struct kx_collector_counts *c = &r->counts;

	fprintf(stderr,
		"kxray: %llu event%s, %llu lost, %zu function%s, %llu thread%s, %llu bytes in %s, %.3f s\n",
		(unsigned long long)c->events, plural(c->events), (unsigned long long)c->lost,
		r->functions, plural(r->functions), (unsigned long long)c->threads,
		plural(c->threads), (unsigned long long)r->bytes, a->o.output, r->seconds);
	if (!c->events && !c->lost)
		fprintf(stderr, "kxray: none of the traced functions was called or returned\n");
	fprintf(stderr, "kxray: clock %s, %.6f GHz (%s)", r->clock, (double)r->tsc_hz * 1e-9,
		r->hz_origin);
	if (r->clock_error_ns)
		fprintf(stderr, ", off by at most %llu ns", (unsigned long long)r->clock_error_ns);
	fprintf(stderr, "; detached in %.0f ms\n", r->detach_seconds * 1e3);
	for (int i = 0; i < KX_LOSS_REASONS; i++)
		if (c->lost_by[i])
			fprintf(stderr, "kxray: %llu lost: %s\n", (unsigned long long)c->lost_by[i],
				why[i]);
	if (c->lost_unwritten)
		fprintf(stderr, "kxray: %llu lost: the trace could not be written any more\n",
			(unsigned long long)c->lost_unwritten);
	if (c->lost_partner)
		fprintf(stderr, "kxray: %llu lost: exits whose entry was lost\n",
			(unsigned long long)c->lost_partner);
	if (c->lost_migrations)
		fprintf(stderr, "kxray: %llu CPU changes or thread records lost\n",
			(unsigned long long)c->lost_migrations);
	if (c->repaired)
		fprintf(stderr, "kxray: %llu call%s closed without an exit of their own (longjmp, "
				"exception, nesting limit, thread end)\n",
			(unsigned long long)c->repaired, plural(c->repaired));
	if (c->orphans)
		fprintf(stderr, "kxray: %llu exit%s left out, of calls that began before the recording\n",
			(unsigned long long)c->orphans, plural(c->orphans));
}

static int print_json(const struct arguments *a, const struct kx_recording_result *r)
{
	const struct kx_collector_counts *c = &r->counts;
	json_t *j = json_pack(
		"{s:I,s:I,s:I,s:I,s:I,s:s,s:f,s:s,s:I,s:s,s:I,s:s,s:I,s:I,s:I,s:I,s:I,s:f,s:f}",
		"events", (json_int_t)c->events, "lost", (json_int_t)c->lost, "functions",
		(json_int_t)r->functions, "threads", (json_int_t)c->threads, "bytes",
		(json_int_t)r->bytes, "clock", r->clock, "seconds", r->seconds, "output",
		a->o.output, "tsc_hz", (json_int_t)r->tsc_hz, "hz_origin", r->hz_origin,
		"clock_error_ns", (json_int_t)r->clock_error_ns, "mechanism", r->mechanism,
		"entries", (json_int_t)c->entries, "exits", (json_int_t)c->exits, "repaired",
		(json_int_t)c->repaired, "orphans", (json_int_t)c->orphans, "migrations",
		(json_int_t)c->migrations, "attach_seconds", r->attach_seconds, "detach_seconds",
		r->detach_seconds);
	int failed = !j || json_dumpf(j, stdout, JSON_COMPACT) || putchar('\n') == EOF ||
		     fflush(stdout);

	json_decref(j);
	return failed;
}

int kx_cmd_record(int argc, char **argv)
{
	struct arguments a = { .o = { .mechanism = -1, .argc = argc, .argv = argv } };
	struct kx_recording_result result;
	struct kx_err err = { 0 };
	int status = parse(&a, argc, argv), code;

	if (status) {
		status--;
		goto out;
	}
	a.o.on_start = on_start;
	a.o.on_notice = on_notice;
	a.o.ctx = &a;
	code = kx_recording_run(&a.o, &result, &err);
	status = KX_EXIT_DONE;
	if (result.started) {
		if (!a.quiet)
			print_summary(&a, &result);
		if (a.json && print_json(&a, &result) && !code)
			code = kx_err_set(&err, -EIO, "the summary cannot be printed on stdout");
		if (a.fail_on_loss && result.counts.lost)
			status = KX_EXIT_LOSS;
	}
	if (code)
		status = kx_cmd_fail("record", &err);
	else if (result.command_ended && !status)
		status = WIFEXITED(result.command_status) ? WEXITSTATUS(result.command_status) :
							    128 + WTERMSIG(result.command_status);
out:
	free(a.include);
	free(a.exclude);
	free(a.pids);
	return status;
}
