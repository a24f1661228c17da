// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/record_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "base/duration.h"
#include "trace/fdr.h"

static const char help[] =
	"Usage: kxray record (-p PID[,PID...] | -a | -- COMMAND [ARG...]) [OPTION]...\n"
	"Records function entries, exits and CPU migrations of a running, unmodified program.\n"
	"\n"
	"What to trace:\n"
	"  -p, --pid PID[,PID...]    attach to these processes\n"
	"  -a, --all                 trace every process, those that start later included; needs -f\n"
	"  -- COMMAND [ARG...]       run this command and trace it from its first instruction\n"
	"      --follow, --no-follow trace child processes, the programs that they run and libraries\n"
	"                            that are loaded later, too (default with -- COMMAND only)\n"
	"  -f, --function PATTERN    trace these functions; [MODULE:]GLOB, may be repeated.\n"
	"                            Without MODULE: of the main executable. Without -f:\n"
	"                            functions of the main executable chosen by size.\n"
	"                            MODULE syscall: the system calls of that name; MODULE\n"
	"                            kernel: the kernel functions\n"
	"  -x, --exclude PATTERN     leave these out; may be repeated\n"
	"      --comm GLOB           only threads with such a name, or of a process with such a name\n"
	"      --uid UID|NAME        only what this user runs\n"
	"      --cgroup PATH         only this control group (version 2) and those inside of it\n"
	"      --cpu LIST            only calls that begin on these CPUs, e.g. 0,2-3\n"
	"      --exits HOW           auto (default), return, instruction or none: where exits\n"
	"                            are seen. auto never endangers the program; return aborts\n"
	"                            programs that throw through traced functions\n"
	"      --args N              record the first N integer arguments (0 to 6),\n"
	"                            and what system calls return\n"
	"      --callers             record each call's return address\n"
	"      --sample HZ           record where the threads are on their CPUs, so often a second\n"
	"      --sched               record when the threads run, wait and are woken, and by whom\n"
	"      --max-functions N     most functions to trace (default 20000)\n"
	"\n"
	"Less of it, decided in the kernel:\n"
	"      --min-duration TIME   only calls that last so long, e.g. 5us (ns, us, ms or s), and the\n"
	"                            calls that they are inside of\n"
	"      --count               write no trace, only count the calls of each function\n"
	"      --depth N             only the N outermost traced calls of each stack (1 to 96)\n"
	"      --by-heat SECONDS     count calls for so long first, then leave out what is called too\n"
	"                            often; without -f the candidates are all functions of the main\n"
	"                            executable with a cheap entry. Needs -p\n"
	"      --max-overhead PCT    of one CPU that --by-heat may predict for what is traced\n"
	"                            (default 5)\n"
	"\n"
	"Flight recorder: write only when asked, what happened before:\n"
	"      --flight-recorder SIZE  keep the newest SIZE bytes of each CPU in memory, e.g. 16M;\n"
	"                            write FILE with a number (trace.1.xray) at SIGUSR1, a trigger,\n"
	"                            the program's crash or exit, and at the end\n"
	"      --keep SECONDS        write the last SECONDS (of the newest 64 MiB a CPU, or of SIZE)\n"
	"      --trigger 'FUNCTION>TIME'   when a call ends that lasted longer, e.g. 'f>10ms';\n"
	"      --trigger 'FUNCTION@entry'  at each call; FUNCTION is a PATTERN and is traced, too.\n"
	"                            May be repeated\n"
	"      --dumps N             keep the newest N files (default 10)\n"
	"      --dump-interval SECONDS  least time between two dumps for calls (default 1)\n"
	"\n"
	"How:\n"
	"  -o, --output FILE         the trace (default trace.xray); FILE.map goes beside it\n"
	"  -d, --duration SECONDS    stop after so long; else at Ctrl-C or the program's end\n"
	"      --fdr-version N       version of the FDR format, 1 to 5 (default 5)\n"
	"      --ring-size SIZE      ring buffer of each CPU, e.g. 4M (default: by memory)\n"
	"      --clock KIND          auto (default), kfunc, perf or ktime\n"
	"      --mechanism M         auto (default), session, multi or single\n"
	"      --kernel-mechanism M  for kernel functions: auto (default), session, multi, fentry\n"
	"                            or single\n"
	"      --fail-on-loss        exit with status 3 if any event was lost\n"
	"      --json                print the summary as one JSON object on stdout\n"
	"  -q, --quiet               print errors only\n"
	"  -h, --help                print this\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 lost events with --fail-on-loss;\n"
	"with -- COMMAND the command's own (128 + N if signal N ended it).\n";

#define DEFAULT_OVERHEAD 5.0 /* percent of one CPU */
#define MAX_MIN_DURATION 3600000000000ULL /* ns */

enum {
	OPT_FOLLOW = 256,
	OPT_NO_FOLLOW,
	OPT_COMM,
	OPT_UID,
	OPT_CGROUP,
	OPT_CPU,
	OPT_EXITS,
	OPT_ARGS,
	OPT_CALLERS,
	OPT_SAMPLE,
	OPT_SCHED,
	OPT_MAX_FUNCTIONS,
	OPT_MIN_DURATION,
	OPT_DEPTH,
	OPT_COUNT,
	OPT_BY_HEAT,
	OPT_MAX_OVERHEAD,
	OPT_FDR_VERSION,
	OPT_RING_SIZE,
	OPT_CLOCK,
	OPT_MECHANISM,
	OPT_KERNEL_MECHANISM,
	OPT_FAIL_ON_LOSS,
	OPT_JSON,
	OPT_FLIGHT,
	OPT_KEEP,
	OPT_TRIGGER,
	OPT_DUMPS,
	OPT_DUMP_INTERVAL,
};

static const struct option options[] = {
	{ "pid", required_argument, NULL, 'p' },
	{ "all", no_argument, NULL, 'a' },
	{ "comm", required_argument, NULL, OPT_COMM },
	{ "uid", required_argument, NULL, OPT_UID },
	{ "cgroup", required_argument, NULL, OPT_CGROUP },
	{ "cpu", required_argument, NULL, OPT_CPU },
	{ "follow", no_argument, NULL, OPT_FOLLOW },
	{ "no-follow", no_argument, NULL, OPT_NO_FOLLOW },
	{ "function", required_argument, NULL, 'f' },
	{ "exclude", required_argument, NULL, 'x' },
	{ "exits", required_argument, NULL, OPT_EXITS },
	{ "args", required_argument, NULL, OPT_ARGS },
	{ "callers", no_argument, NULL, OPT_CALLERS },
	{ "sample", required_argument, NULL, OPT_SAMPLE },
	{ "sched", no_argument, NULL, OPT_SCHED },
	{ "max-functions", required_argument, NULL, OPT_MAX_FUNCTIONS },
	{ "min-duration", required_argument, NULL, OPT_MIN_DURATION },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "count", no_argument, NULL, OPT_COUNT },
	{ "by-heat", required_argument, NULL, OPT_BY_HEAT },
	{ "max-overhead", required_argument, NULL, OPT_MAX_OVERHEAD },
	{ "flight-recorder", required_argument, NULL, OPT_FLIGHT },
	{ "keep", required_argument, NULL, OPT_KEEP },
	{ "trigger", required_argument, NULL, OPT_TRIGGER },
	{ "dumps", required_argument, NULL, OPT_DUMPS },
	{ "dump-interval", required_argument, NULL, OPT_DUMP_INTERVAL },
	{ "output", required_argument, NULL, 'o' },
	{ "duration", required_argument, NULL, 'd' },
	{ "fdr-version", required_argument, NULL, OPT_FDR_VERSION },
	{ "ring-size", required_argument, NULL, OPT_RING_SIZE },
	{ "clock", required_argument, NULL, OPT_CLOCK },
	{ "mechanism", required_argument, NULL, OPT_MECHANISM },
	{ "kernel-mechanism", required_argument, NULL, OPT_KERNEL_MECHANISM },
	{ "fail-on-loss", no_argument, NULL, OPT_FAIL_ON_LOSS },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
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

static bool parse_pids(struct kx_record_arguments *a, const char *text)
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

static bool parse_seconds(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return !*end && end != text && *out > 0 && *out < 1e9;
}

static int add_trigger(struct kx_record_arguments *a, const char *text)
{
	struct kx_trigger *grown =
		realloc(a->triggers, (a->flight.ntriggers + 1) * sizeof(*grown));
	struct kx_err err;

	if (!grown)
		abort();
	a->triggers = grown;
	if (kx_trigger_parse(text, &grown[a->flight.ntriggers], &err))
		return 1 + kx_cmd_usage("record", "%s", err.text);
	a->flight.ntriggers++;
	return 0;
}

/* The options of a flight recorder; any other is left to parse_option. */
static int parse_flight_option(struct kx_record_arguments *a, int c)
{
	unsigned long long n;

	switch (c) {
	case OPT_FLIGHT:
		if (!parse_size(optarg, &a->flight.bytes) || a->flight.bytes < KX_FLIGHT_MIN_BYTES)
			return 1 + kx_cmd_usage("record",
						"--flight-recorder takes bytes, 64K at least, as in 512K or "
						"16M, not '%s'",
						optarg);
		a->o.flight = &a->flight;
		return 0;
	case OPT_KEEP:
		if (!parse_seconds(optarg, &a->flight.keep))
			return 1 + kx_cmd_usage("record", "--keep takes seconds above 0, not '%s'",
						optarg);
		a->o.flight = &a->flight;
		return 0;
	case OPT_TRIGGER:
		return add_trigger(a, optarg);
	case OPT_DUMPS:
		if (!parse_whole(optarg, 1000000, &n) || !n)
			return 1 + kx_cmd_usage("record", "--dumps takes 1 to 1000000, not '%s'",
						optarg);
		a->flight.dumps = (unsigned)n;
		return 0;
	default:
		if (!parse_seconds(optarg, &a->flight.interval))
			return 1 + kx_cmd_usage("record",
						"--dump-interval takes seconds above 0, not '%s'",
						optarg);
		return 0;
	}
}

/* Options that mean nothing without others; defaults; triggers are traced in any case. */
static int complete_flight(struct kx_record_arguments *a)
{
	bool any = a->flight.ntriggers || a->flight.dumps || a->flight.interval > 0;

	if (any && !a->o.flight)
		return 1 + kx_cmd_usage("record",
					"--trigger, --dumps and --dump-interval are for a flight "
					"recorder: add --flight-recorder SIZE or --keep SECONDS");
	if (!a->o.flight)
		return 0;
	if (!a->flight.dumps)
		a->flight.dumps = KX_FLIGHT_DUMPS;
	if (!(a->flight.interval > 0))
		a->flight.interval = KX_FLIGHT_INTERVAL;
	a->flight.triggers = a->triggers;
	for (size_t i = 0; i < a->flight.ntriggers; i++)
		add_pattern(&a->include, &a->o.select.ninclude, a->triggers[i].pattern);
	return 0;
}

/* 0 to go on, else kxray's exit status + 1. */
static int add_filter(struct kx_record_arguments *a, uint32_t kind, const char *text)
{
	struct kx_err err;
	int code = kx_filters_add(&a->o.filters, kind, text, &err);

	if (code == -EINVAL)
		return 1 + kx_cmd_usage("record", "%s", err.text);
	if (code)
		return 1 + kx_cmd_fail("record", &err);
	return 0;
}

/* A number above 0 and up to @max, with "%" after it if @percent. */
static bool parse_real(const char *text, double max, bool percent, double *out)
{
	char *end;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	*out = strtod(text, &end);
	end += percent && *end == '%';
	return !*end && *out > 0 && *out <= max;
}

/* 0 to go on, else kxray's exit status + 1. */
static int parse_option(struct kx_record_arguments *a, int c)
{
	static const char *const exits[] = { "auto", "return", "instruction", "none", NULL };
	static const char *const clocks[] = { "auto", "kfunc", "perf", "ktime", NULL };
	static const char *const mechanisms[] = { "auto", "session", "multi", "single", NULL };
	/* in the order of enum kx_kernel_mechanism */
	static const char *const kernel_mechanisms[] = { "auto", "session", "multi", "fentry",
							 "single", NULL };
	unsigned long long n;
	int i;

	switch (c) {
	case 'p':
		if (!parse_pids(a, optarg))
			return 1 + kx_cmd_usage("record",
						"-p takes process ids, each once, as in -p 12,34, not "
						"'%s'; by name: -p \"$(pgrep -n NAME)\"",
						optarg);
		return 0;
	case 'a':
		a->o.all = true;
		return 0;
	case OPT_COMM:
		return add_filter(a, KX_FILTER_COMM, optarg);
	case OPT_UID:
		return add_filter(a, KX_FILTER_UID, optarg);
	case OPT_CGROUP:
		return add_filter(a, KX_FILTER_CGROUP, optarg);
	case OPT_CPU:
		return add_filter(a, KX_FILTER_CPU, optarg);
	case OPT_FOLLOW:
		a->o.follow = a->o.select.match_later = true;
		a->no_follow = false;
		return 0;
	case OPT_NO_FOLLOW:
		a->o.follow = a->o.select.match_later = false;
		a->no_follow = true;
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
		if (!parse_seconds(optarg, &a->o.seconds))
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
	case OPT_SCHED:
		a->o.sources[KX_SOURCE_SCHED] = true;
		return 0;
	case OPT_MAX_FUNCTIONS:
		if (!parse_whole(optarg, KX_FDR_MAX_FUNC, &n) || !n)
			return 1 + kx_cmd_usage("record", "--max-functions takes 1 to %u, not '%s'",
						KX_FDR_MAX_FUNC, optarg);
		a->o.select.max_functions = (size_t)n;
		return 0;
	case OPT_MIN_DURATION:
		if (!kx_parse_time(optarg, NULL, &a->o.min_duration_ns) || !a->o.min_duration_ns ||
		    a->o.min_duration_ns > MAX_MIN_DURATION)
			return 1 + kx_cmd_usage("record",
						"--min-duration takes a time of 1ns to 3600s, as in 5us "
						"or 0.5ms, not '%s'",
						optarg);
		return 0;
	case OPT_DEPTH:
		if (!parse_whole(optarg, KX_MAX_DEPTH, &n) || !n)
			return 1 + kx_cmd_usage("record", "--depth takes 1 to %d, not '%s'",
						KX_MAX_DEPTH, optarg);
		a->o.max_depth = (unsigned)n;
		return 0;
	case OPT_BY_HEAT:
		if (!parse_real(optarg, 3600, false, &a->heat_seconds))
			return 1 + kx_cmd_usage("record", "--by-heat takes seconds above 0, at most "
							  "3600, not '%s'",
						optarg);
		return 0;
	case OPT_MAX_OVERHEAD:
		if (!parse_real(optarg, 100000, true, &a->max_overhead))
			return 1 + kx_cmd_usage("record", "--max-overhead takes percent of one CPU, as "
							  "in 5 or 12.5%%, not '%s'",
						optarg);
		return 0;
	case OPT_COUNT:
		a->o.count = true;
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
	case OPT_KERNEL_MECHANISM:
		i = choice(optarg, kernel_mechanisms);
		if (i < 0)
			return 1 + kx_cmd_usage("record",
						"--kernel-mechanism is auto, session, multi, fentry or "
						"single, not '%s'",
						optarg);
		a->o.kernel_mechanism = (enum kx_kernel_mechanism)i;
		return 0;
	case OPT_FAIL_ON_LOSS:
		a->fail_on_loss = true;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case OPT_FLIGHT:
	case OPT_KEEP:
	case OPT_TRIGGER:
	case OPT_DUMPS:
	case OPT_DUMP_INTERVAL:
		return parse_flight_option(a, c);
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

static int check_targets(struct kx_record_arguments *a)
{
	if (a->o.command && a->pids)
		return 1 + kx_cmd_usage("record", "either -p or a command after '--', not both");
	if (a->o.all && (a->o.command || a->pids))
		return 1 + kx_cmd_usage("record", "-a traces every process: leave out %s",
					a->pids ? "-p" : "the command, or start it meanwhile");
	if (!a->o.command && !a->pids && !a->o.all)
		return 1 + kx_cmd_usage("record",
					"what shall be traced? name a process with -p PID, every process "
					"with -a, or a command after '--'");
	if (a->o.all && !a->o.select.ninclude)
		return 1 + kx_cmd_usage("record", "-a needs -f: which functions of which modules, as in "
						  "-a -f 'libssl.so*:SSL_*'");
	if (a->o.all && a->no_follow)
		return 1 + kx_cmd_usage("record", "-a always takes in processes that start later: "
						  "leave out --no-follow");
	if (a->o.all)
		a->o.follow = a->o.select.match_later = true;
	else if (a->o.command && !a->no_follow)
		a->o.follow = true;
	return 0;
}

static int check_heat(struct kx_record_arguments *a)
{
	if (a->max_overhead > 0 && !(a->heat_seconds > 0))
		return 1 + kx_cmd_usage("record", "--max-overhead is for --by-heat SECONDS, which "
						  "counts calls first");
	if (!(a->heat_seconds > 0))
		return 0;
	if (!a->pids)
		return 1 + kx_cmd_usage("record", "--by-heat needs running processes to count calls in: "
						  "-p PID");
	if (a->o.count)
		return 1 + kx_cmd_usage("record", "either --count or --by-heat, not both");
	if (!(a->max_overhead > 0))
		a->max_overhead = DEFAULT_OVERHEAD;
	return 0;
}

/* What has no meaning where no trace is written. */
static int check_count(const struct kx_record_arguments *a)
{
	const struct kx_recording_options *o = &a->o;
	const char *vain = o->output	      ? "-o" :
			   o->flight	      ? "the flight recorder" :
			   o->min_duration_ns ? "--min-duration" :
			   o->max_depth	      ? "--depth" :
			   o->nargs	      ? "--args" :
			   o->callers	      ? "--callers" :
			   o->sample_hz	      ? "--sample" :
			   o->sources[KX_SOURCE_SCHED] ? "--sched" :
			   o->fdr_version     ? "--fdr-version" :
			   o->ring_bytes      ? "--ring-size" :
			   o->select.exits    ? "--exits" :
						NULL;

	if (!o->count || !vain)
		return 0;
	return 1 + kx_cmd_usage("record", "--count writes no trace, it only counts calls: leave out %s",
				vain);
}

int kx_record_parse(struct kx_record_arguments *a, int argc, char **argv)
{
	int c, status;

	optind = 1;
	while ((c = getopt_long(argc, argv, "+:ap:f:x:o:d:qh", options, NULL)) != -1) {
		if (c == ':')
			return 1 + kx_cmd_usage("record", "the option '%s' needs a value",
						argv[optind - 1]);
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
	status = check_targets(a);
	if (!status)
		status = complete_flight(a);
	if (!status)
		status = check_heat(a);
	if (!status)
		status = check_count(a);
	if (status)
		return status;
	if (a->o.count)
		a->o.select.exits = KX_EXITS_NONE;
	if (a->o.min_duration_ns && a->o.select.exits == KX_EXITS_NONE)
		return 1 + kx_cmd_usage("record", "--min-duration needs to see exits: leave out "
						  "--exits=none");
	a->o.pids = a->pids;
	a->o.select.include = a->include;
	a->o.select.exclude = a->exclude;
	if (!a->o.output && !a->o.count)
		a->o.output = "trace.xray";
	return 0;
}

void kx_record_arguments_free(struct kx_record_arguments *a)
{
	kx_counts_free(&a->counts);
	kx_call_rates_free(&a->heat);
	free(a->include);
	free(a->exclude);
	free(a->pids);
	for (size_t i = 0; i < a->flight.ntriggers; i++)
		kx_trigger_free(&a->triggers[i]);
	free(a->triggers);
}
