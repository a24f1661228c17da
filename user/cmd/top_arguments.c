// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/top_arguments.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cmd/record_options.h"
#include "cmd/top_metrics.h"
#include "select/condition.h"
#include "select/value_spec.h"

#define FIELD(member) KX_FIELD(struct kx_top_arguments, member)
/* Where functions may join, all of them need room from the start: 384 bytes each and CPU. */
#define MOST_JOINING 4096

static const struct kx_option showing[] = {
	{ .name = "interval",
	  .short_name = 'i',
	  .kind = KX_OPTION_SECONDS,
	  .argument = "TIME",
	  .max = 3600,
	  FIELD(interval),
	  .help = "show what happened in the last TIME, each time anew (default 1s)" },
	{ .name = "count",
	  .short_name = 'n',
	  .kind = KX_OPTION_NUMBER,
	  .argument = "N",
	  .min = 1,
	  .max = UINT32_MAX,
	  FIELD(count),
	  .help = "end after N intervals" },
	{ .name = "duration",
	  .short_name = 'd',
	  .kind = KX_OPTION_SECONDS,
	  .argument = "TIME",
	  FIELD(r.o.seconds),
	  .help = "end after this time; default: at q, Ctrl-C or when the target exits" },
	{ .name = "sort",
	  .short_name = 's',
	  .kind = KX_OPTION_CHOICE,
	  .argument = "KEY",
	  .words = kx_call_sort_words,
	  FIELD(sort),
	  .help = "share (default), calls, p50, p99, max or name" },
	{ .name = "limit",
	  .short_name = 'l',
	  .kind = KX_OPTION_NUMBER,
	  .argument = "N",
	  .min = 1,
	  .max = UINT32_MAX,
	  FIELD(limit),
	  .help = "the first N functions only" },
	{ .name = "batch",
	  .short_name = 'b',
	  .kind = KX_OPTION_FLAG,
	  FIELD(batch),
	  .help = "print a table each interval, as without a terminal" },
	{ .name = "json",
	  .kind = KX_OPTION_FLAG,
	  FIELD(r.json),
	  .help = "print a JSON object on a line each interval",
	  .manual = "Print a JSON object on a line each interval, see JSON." },
	{ .name = "prometheus",
	  .kind = KX_OPTION_TEXT,
	  .argument = "PORT|FILE",
	  FIELD(prometheus),
	  .help = "serve the same as metrics at http://127.0.0.1:PORT/metrics, or write them to "
		  "FILE each interval",
	  .manual = "Serve the same as metrics for Prometheus: at http://127.0.0.1:PORT/metrics "
		    "(0: any free port, which is "
		    "printed), for programs of this machine, without authentication; or as FILE, "
		    "which is replaced as a whole "
		    "each interval, for node_exporter's textfile collector. What is no number is a "
		    "FILE. See METRICS." },
	{ .name = "max-overhead",
	  .kind = KX_OPTION_PERCENT,
	  .argument = "PCT",
	  .max = 100000,
	  FIELD(r.max_overhead),
	  .takes = "percent of the CPU time that the program uses, as in 5 or 12.5%",
	  .help = "without -f: choose functions so that recording them would cost at most PCT "
		  "percent of the CPU time that "
		  "the program uses (default 5)" },
	{ .name = "yes",
	  .short_name = 'y',
	  .kind = KX_OPTION_FLAG,
	  FIELD(r.yes),
	  .help = "begin even if the predicted cost is high" },
	{ .name = "mechanism",
	  .kind = KX_OPTION_CHOICE,
	  .argument = "M",
	  .words = kx_mechanism_words,
	  .constant = -1,
	  FIELD(r.o.mechanism),
	  .help = "auto (default), session, multi or single: see record" },
	{ .name = "kernel-mechanism",
	  .kind = KX_OPTION_CHOICE,
	  .argument = "M",
	  .words = kx_kernel_mechanism_words,
	  FIELD(r.o.kernel_mechanism),
	  .help = "for kernel functions: auto (default), session, multi, fentry or single" },
	{ .name = "quiet",
	  .short_name = 'q',
	  .kind = KX_OPTION_FLAG,
	  FIELD(r.quiet),
	  .help = "no messages and no tables: errors and what --json and --prometheus ask for "
		  "only" },
	KX_HELP_OPTION,
	{ 0 },
};

const struct kx_option_group kx_top_options[] = {
	{ .heading = "What to trace",
	  .options = kx_target_options,
	  .offset = offsetof(struct kx_top_arguments, r) },
	{ .heading = "Showing it", .options = showing },
	{ .options = kx_screen_options, .offset = offsetof(struct kx_top_arguments, screen) },
	{ 0 },
};

/* Of -f, which record has in common with top. */
static int refuse_values(const struct kx_top_arguments *a, struct kx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < a->r.o.select.ninclude && !r; i++) {
		struct kx_value_spec spec;

		size_t end = kx_condition_find(a->r.include[i]);

		if (a->r.include[i][end])
			return kx_err_set(err, -EINVAL, "top shows all calls, and no conditions, as in '%s': give -f '%.*s'",
					  a->r.include[i], (int)end, a->r.include[i]);
		r = kx_value_spec_parse(a->r.include[i], &spec, err);
		if (!r && spec.n && !spec.uncertain)
			r = kx_err_set(err, -EINVAL,
				       "top records no values of calls, as in '%s': give -f '%s'",
				       a->r.include[i], spec.pattern);
		kx_value_spec_free(&spec);
	}
	return r;
}

static int check(struct kx_top_arguments *a, struct kx_err *err)
{
	struct kx_recording_options *o = &a->r.o;
	int r;

	if (o->all && a->r.pids)
		return kx_err_set(err, -EINVAL, "-a traces every process: leave out -p");
	if (!o->all && !a->r.pids)
		return kx_err_set(err, -EINVAL, "nothing to trace: give -p PID or -a");
	if (o->all && !o->select.ninclude)
		return kx_err_set(err, -EINVAL,
				  "-a needs -f: which functions of which modules, as in "
				  "-a -f 'libssl.so*:SSL_*'");
	if (o->all && a->r.follow < 0)
		return kx_err_set(
			err, -EINVAL,
			"-a always includes processes that start later: leave out --no-follow");
	if (a->r.max_overhead > 0 && o->select.ninclude)
		return kx_err_set(err, -EINVAL,
				  "--max-overhead chooses functions where none are named: leave it "
				  "out, or -f");
	r = refuse_values(a, err);
	return r ? r : kx_top_metrics_check(a->prometheus, err);
}

int kx_top_parse(const struct kx_command *c, struct kx_top_arguments *a, int argc, char **argv,
		 struct kx_err *err)
{
	struct kx_recording_options *o = &a->r.o;
	int r = kx_options_parse(c, a, argc, argv, err);

	if (r == -EINVAL && !strncmp(err->text, "unexpected argument", 19) && optind < argc)
		r = kx_err_set(err, -EINVAL,
			       "unexpected argument '%s': a process is named with -p PID",
			       argv[optind]);
	if (!r)
		r = check(a, err);
	if (!(a->interval > 0))
		a->interval = 1;
	o->pids = a->r.pids;
	o->select.include = a->r.include;
	o->select.exclude = a->r.exclude;
	o->select.match_later = o->all || a->r.follow > 0;
	o->follow_exact = a->r.follow > 1;
	o->follow = o->select.match_later;
	if (o->follow && !o->select.max_functions)
		o->select.max_functions = MOST_JOINING;
	/* what the histograms count is ns */
	o->clock = KX_CLOCK_KTIME;
	return r;
}

void kx_top_arguments_free(const struct kx_command *c, struct kx_top_arguments *a)
{
	kx_options_free(c, a);
	kx_call_rates_free(&a->r.heat);
}
