// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/record_choice.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/printable.h"
#include "record/targets.h"

/* Percent of the CPU time that the program uses. */
#define HIGH_OVERHEAD 50.0

/* Seconds of counting: for a choice, and for a prediction alone. */
#define CHOICE_SECONDS	   1.0
#define PREDICTION_SECONDS 0.2

enum mode { NOTHING, PREDICT, BY_SIZE, BY_HEAT };

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static bool on_terminal(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static enum mode mode_of(const struct kx_record_arguments *a)
{
	if (!a->pids || a->o.count)
		return NOTHING;
	if (a->heat_seconds > 0)
		return BY_HEAT;
	if (!a->o.select.ninclude)
		return BY_SIZE;
	/* uprobes would be counted, and their cost predicted, which is some fifty times that in process */
	if (a->o.in_process)
		return NOTHING;
	if (kx_patterns_in_space(a->o.select.include, a->o.select.ninclude, KX_PATTERN_USER) &&
	    !(a->max_overhead > 0) && on_terminal() && !a->quiet && !a->yes)
		return PREDICT;
	return NOTHING;
}

static void print_hot(const struct kx_call_rates *h, enum mode mode)
{
	if (mode == BY_SIZE) {
		for (size_t i = 0; i < h->nhot && i < 3; i++)
			kx_print(stderr, "%s%s", i ? ", " : "; left out as called too often: ",
				h->hot[i].name);
		if (h->nhot > 3)
			kx_print(stderr, " and %zu more", h->nhot - 3);
		fputc('\n', stderr);
		return;
	}
	fputc('\n', stderr);
	for (size_t i = 0; i < h->nhot && i < 5; i++)
		kx_print(stderr, "kxray: too hot: %s: %.0f calls a second, %.1f %% of one CPU\n",
			h->hot[i].name, h->hot[i].per_second, h->hot[i].percent);
	if (h->nhot > 5)
		kx_print(stderr, "kxray: too hot: %zu more\n", h->nhot - 5);
}

static void print_choice(const struct kx_call_rates *h, enum mode mode)
{
	kx_print(stderr,
		"kxray: %s in %.1f s: %zu function%s (%zu of them called), predicted to take %.2f %% of "
		"one CPU, %.1f %% of what the program uses",
		mode == BY_HEAT ? "by heat" : "counted calls", h->seconds, h->nkept, plural(h->nkept),
		h->ncalled, h->percent, h->overhead);
	if (h->cheap_only)
		kx_print(stderr, "; functions with an expensive entry were not considered (name them "
				"with -f)");
	print_hot(h, mode);
}

/* Too costly: asks where somebody can answer, else warns. */
static int judge(const struct kx_record_arguments *a, double limit, struct kx_err *err)
{
	double overhead = a->heat.overhead;

	if (overhead <= limit || a->yes)
		return 0;
	if (on_terminal())
		return kx_err_set(err, -ECANCELED,
				  "recording these functions is predicted to take %.0f %% of the CPU "
				  "time that the program uses; select fewer ('kxray functions --rate 1' "
				  "shows which are called most, --by-heat 1 leaves them out), or add "
				  "--yes",
				  overhead);
	if (!a->quiet)
		kx_print(stderr, "kxray: warning: this is predicted to take %.0f %% of the CPU time "
				"that the program uses; --by-heat 1 leaves out what is called most\n",
			overhead);
	return 0;
}

/* The same errors as the recording itself has for processes that cannot be traced. */
static int check_targets(const struct kx_record_arguments *a, struct kx_err *err)
{
	struct kx_targets targets = { 0 };
	int code = kx_targets_open(&targets, a->o.pids, a->o.npids, err);

	if (!code)
		code = kx_targets_read_modules(&targets, err);
	if (code && kx_targets_ended(&targets))
		code = kx_err_set(err, -ESRCH, "process %d ended before the recording began",
				  kx_targets_ended(&targets));
	kx_targets_free(&targets);
	return code;
}

int kx_record_choose(struct kx_record_arguments *a, struct kx_err *err)
{
	enum mode mode = mode_of(a);
	bool chooses = mode == BY_SIZE || mode == BY_HEAT;
	struct kx_call_rates_options how = {
		.pids = a->o.pids,
		.npids = a->o.npids,
		.seconds = mode == BY_HEAT   ? a->heat_seconds
			   : mode == BY_SIZE ? CHOICE_SECONDS
					     : PREDICTION_SECONDS,
		.max_overhead = a->max_overhead > 0 ? a->max_overhead
				: chooses	    ? KX_DEFAULT_OVERHEAD
						    : HIGH_OVERHEAD,
		.by_size = mode == BY_SIZE,
		.predict_only = mode == PREDICT,
	};
	int code;

	if (mode == NOTHING)
		return 0;
	code = check_targets(a, err);
	if (!code && mode == BY_HEAT && !a->quiet)
		kx_print(stderr, "kxray: counting calls for %g s\n", how.seconds);
	if (!code)
		code = kx_call_rates_select(&how, &a->o.select, &a->heat, err);
	if (code)
		return code;
	if (chooses)
		a->o.select = a->heat.select;
	if (!a->quiet && chooses)
		print_choice(&a->heat, mode);
	else if (!a->quiet)
		kx_print(stderr,
			"kxray: predicted to take %.*f %% of the CPU time that the program uses (calls "
			"counted for %.1f s)\n",
			a->heat.overhead < 10 ? 1 : 0, a->heat.overhead, a->heat.seconds);
	return judge(a, chooses ? HIGH_OVERHEAD : how.max_overhead, err);
}
