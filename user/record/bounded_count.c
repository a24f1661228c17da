// SPDX-License-Identifier: BSD-2-Clause
#include "record/bounded_count.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "attach/probes.h"
#include "base/monotonic.h"
#include "base/process_cpu.h"
#include "base/stop_request.h"
#include "tracer/keeper.h"
#include "tracer/tracer.h"
#include "tracer/uprobe_try.h"

#define RING_BYTES   (64u << 10) /* nothing is recorded */
#define FIRST_GROUP  128u
#define STEP_SECONDS 0.05
#define STEP_NS	     10e6 /* CPU time that the hits of a step may cost, before it is ended */
#define POLL_MS	     5
#define MAX_ROUNDS   16	  /* of counting all that are left */
#define LEAST_CPU    0.1 /* CPUs: so much is assumed of a program that hardly runs */
#define LEAST_ACTIVE 0.2 /* of its usual progress: below that the measured costs are too inexact */
#define FEW_HITS     16u /* of a step that ended early: too few for a rate */

struct counter {
	const struct kx_selection *sel;
	const struct kx_bounded_options *o;
	struct kx_selection steps; /* @sel with entries only, of which the present group is traced */
	struct kx_call_costs costs;
	struct kx_tracer *tracer;
	int signals;
	double usual_cpu; /* CPUs that the processes take undisturbed */
	uint64_t *before, *now; /* calls, by index */
	double *percent;	/* of one CPU, by index; 0 while too few hits were counted */
	bool *in;		/* by index: not set aside */
	struct kx_rates *out;
};

/* CPU time of all processes that are left, seconds. */
static double cpu_time(const struct kx_bounded_options *o)
{
	double sum = 0, used;

	for (size_t i = 0; i < o->n; i++)
		if ((used = kx_process_cpu_seconds(o->pids[i])) > 0)
			sum += used;
	return sum;
}

static bool any_left(const struct kx_bounded_options *o)
{
	for (size_t i = 0; i < o->n; i++)
		if (!kill(o->pids[i], 0) || errno == EPERM)
			return true;
	return false;
}

static double entry_ns(const struct counter *c, size_t i)
{
	enum kx_cost cost = c->sel->functions[i].plan.entry.cost;

	return cost <= KX_COST_STEPPED ? c->costs.entry_ns[cost] : 0;
}

/* What the hits since the step's beginning have cost, ns; -1: they cannot be read. */
static double spent_ns(struct counter *c)
{
	double sum = 0;

	if (kx_tracer_calls(c->tracer, c->now, (uint32_t)c->sel->nfunctions, NULL))
		return -1;
	for (size_t i = 0; i < c->sel->nfunctions; i++)
		sum += (double)(c->now[i] - c->before[i]) * entry_ns(c, i);
	return sum;
}

/*
 * Waits until @seconds are over or the hits have cost @allowed_ns and @share of the time since.
 * 1: it ended early; 0; errors: -EINTR.
 */
static int wait_for_hits(struct counter *c, double seconds, double allowed_ns, double share)
{
	double start = kx_monotonic_seconds(), past = 0;
	struct pollfd fd = { .fd = c->signals, .events = POLLIN };

	while (past < seconds) {
		double left = (seconds - past) * 1e3, spent;

		if (poll(&fd, 1, left < POLL_MS ? (int)left + 1 : POLL_MS) > 0)
			return -EINTR;
		spent = spent_ns(c);
		past = kx_monotonic_seconds() - start;
		if (spent < 0)
			return -EIO;
		if (spent > allowed_ns + share * past * 1e9)
			return 1;
	}
	return 0;
}

/* Rates of the functions of a step that took @wall seconds and @cpu seconds of CPU time. */
static void take_rates(struct counter *c, double wall, double cpu)
{
	double own = cpu - spent_ns(c) * 1e-9, active = 1;

	if (c->usual_cpu > 0 && wall > 0)
		active = own / (wall * c->usual_cpu);
	active = active > 1 ? 1 : active < LEAST_ACTIVE ? LEAST_ACTIVE : active;
	for (size_t i = 0; i < c->sel->nfunctions; i++) {
		struct kx_rate *r = &c->out->items[i];
		uint64_t hits = c->now[i] - c->before[i];

		if (!c->steps.functions[i].traced)
			continue;
		r->per_second = (double)hits / (wall * active);
		r->percent = r->cost_ns > 0 ? r->per_second * r->cost_ns * 1e-7 : 0;
		c->percent[i] = hits < FEW_HITS ? 0 : r->percent;
	}
	memcpy(c->before, c->now, c->sel->nfunctions * sizeof(*c->before));
}

/* The recording will report it. */
static void on_refused(void *ctx, const struct kx_function *f, const char *reason)
{
	(void)ctx;
	(void)f;
	(void)reason;
}

/* Counts the functions of steps that are traced. 1: ended early. */
static int step(struct counter *c, double seconds, double share, struct kx_err *err)
{
	const struct kx_probes_options options = { .procs = c->o->procs,
						   .nprocs = c->o->n,
						   .refused = on_refused };
	struct kx_probes *probes;
	double start, cpu;
	int code = kx_probes_attach(c->tracer, &c->steps, &options, &probes, err);

	if (code == -EOPNOTSUPP)
		return 0; /* the kernel refuses all of this group: the recording will leave them out */
	if (code)
		return code;
	start = kx_monotonic_seconds();
	cpu = cpu_time(c->o);
	kx_tracer_ready(c->tracer, true);
	code = wait_for_hits(c, seconds, STEP_NS, share);
	kx_tracer_ready(c->tracer, false);
	seconds = kx_monotonic_seconds() - start;
	cpu = cpu_time(c->o) - cpu;
	kx_probes_free(probes);
	if (code == -EINTR)
		return code;
	if (!any_left(c->o))
		return kx_err_set(err, -ESRCH, "process %d ended before the recording began",
				  c->o->pids[0]);
	if (code < 0)
		return kx_err_set(err, code, "the counted calls cannot be read");
	c->out->seconds += seconds;
	take_rates(c, seconds, cpu);
	return code;
}

size_t kx_bounded_set_aside(const double *percent, bool *in, size_t n, double budget)
{
	size_t aside = 0;
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += in[i] ? percent[i] : 0;
	while (sum > budget) {
		size_t worst = n;

		for (size_t i = 0; i < n; i++)
			if (in[i] && percent[i] > 0 && (worst == n || percent[i] > percent[worst]))
				worst = i;
		if (worst == n)
			break;
		in[worst] = false;
		sum -= percent[worst];
		aside++;
	}
	return aside;
}

static double budget_of(const struct counter *c)
{
	return c->o->max_percent * c->out->target_cpus;
}

/* The functions of one group, of @first and the @n after it that can be traced. Returns the next. */
static size_t choose_group(struct counter *c, size_t first, size_t n)
{
	size_t i;

	for (i = 0; i < c->sel->nfunctions; i++)
		c->steps.functions[i].traced = false;
	for (i = first; i < c->sel->nfunctions && n; i++) {
		if (!c->in[i])
			continue;
		c->steps.functions[i].traced = true;
		n--;
	}
	return i;
}

static int count_groups(struct counter *c, struct kx_err *err)
{
	size_t size = FIRST_GROUP, next;

	for (size_t first = 0; first < c->sel->nfunctions; first = next) {
		size_t all = c->sel->nfunctions;
		int early;

		next = choose_group(c, first, size);
		early = step(c, STEP_SECONDS, 0, err);
		if (early < 0)
			return early;
		if (!early)
			size *= 2;
		kx_bounded_set_aside(c->percent + first, c->in + first,
				     (next < all ? next : all) - first, budget_of(c));
	}
	return 0;
}

/* All that are left, until they are within the budget for the whole time. */
static int count_together(struct counter *c, struct kx_err *err)
{
	const double share = budget_of(c) * 1e-2;

	for (int round = 0; round < MAX_ROUNDS; round++) {
		size_t n = c->sel->nfunctions;
		int early;

		choose_group(c, 0, n);
		early = step(c, c->o->seconds, share, err);
		if (early <= 0)
			return early;
		/* the step has ended early, so at least the costliest one goes */
		if (!kx_bounded_set_aside(c->percent, c->in, n, budget_of(c)))
			kx_bounded_set_aside(c->percent, c->in, n, 0.5 * budget_of(c));
	}
	return 0;
}

/* Measures what a hit costs, and meanwhile what the processes take undisturbed. */
static int measure(struct counter *c, enum kx_mechanism mechanism, struct kx_err *err)
{
	double start = kx_monotonic_seconds(), cpu = cpu_time(c->o);
	int code = kx_call_costs_measure(mechanism, false, &c->costs, err);

	c->usual_cpu = (cpu_time(c->o) - cpu) / (kx_monotonic_seconds() - start);
	c->out->target_cpus = c->usual_cpu > LEAST_CPU ? c->usual_cpu : LEAST_CPU;
	for (size_t i = 0; i < c->sel->nfunctions && !code; i++) {
		const struct kx_function *f = &c->sel->functions[i];

		c->in[i] = f->traced && kx_select_is_probed_by(c->sel, f, KX_PROBE_UPROBE);
		if (c->in[i])
			c->out->items[i].cost_ns = kx_call_cost(&c->costs, &f->plan);
	}
	return code;
}

static int prepare(struct counter *c, struct kx_err *err)
{
	size_t n = c->sel->nfunctions;
	sigset_t set;

	c->steps = *c->sel;
	c->steps.functions = calloc(n + 1, sizeof(*c->steps.functions));
	c->before = calloc(n + 1, sizeof(*c->before));
	c->now = calloc(n + 1, sizeof(*c->now));
	c->percent = calloc(n + 1, sizeof(*c->percent));
	c->in = calloc(n + 1, sizeof(*c->in));
	c->out->items = calloc(n + 1, sizeof(*c->out->items));
	if (!c->steps.functions || !c->before || !c->now || !c->percent || !c->in || !c->out->items)
		return kx_err_set(err, -ENOMEM, "no memory for the counted calls");
	for (size_t i = 0; i < n; i++) {
		c->steps.functions[i] = c->sel->functions[i];
		c->steps.functions[i].plan.exit_kind = KX_EXITS_NONE;
		c->steps.functions[i].plan.nexits = 0;
	}
	kx_stop_signals(&set);
	c->signals = signalfd(-1, &set, SFD_CLOEXEC);
	return c->signals < 0 ? kx_err_set(err, -errno, "signals cannot be received: %s",
					   strerror(errno))
			      : 0;
}

static int count(struct counter *c, struct kx_err *err)
{
	struct kx_tracer_options options = { .ring_bytes = RING_BYTES,
					     .pids = c->o->pids,
					     .npids = c->o->n,
					     .count_functions = (uint32_t)c->sel->nfunctions };
	int code = prepare(c, err);

	if (!code)
		code = kx_mechanism_best(&options.mechanism, err);
	if (!code)
		code = measure(c, options.mechanism, err);
	if (!code)
		code = kx_tracer_new(&options, &c->tracer, err);
	if (!code)
		code = count_groups(c, err);
	if (!code)
		code = count_together(c, err);
	kx_tracer_free(c->tracer);
	for (size_t i = 0; i < c->sel->nfunctions && !code; i++)
		c->out->percent += c->out->items[i].percent;
	return code;
}

int kx_bounded_count(const struct kx_selection *sel, const struct kx_bounded_options *options,
		     struct kx_rates *out, struct kx_err *err)
{
	struct counter c = { .sel = sel, .o = options, .signals = -1, .out = out };
	sigset_t ends, old;
	int code;

	memset(out, 0, sizeof(*out));
	/* the recording after it uses the same one; without it a SIGKILL would leave probes behind */
	kx_keeper_start(NULL);
	kx_stop_signals(&ends);
	/* a shell that runs us in the background has SIGINT ignored, and then it is lost */
	signal(SIGINT, SIG_DFL);
	sigprocmask(SIG_BLOCK, &ends, &old);
	kx_stop_listen(true);
	code = count(&c, err);
	/* while it is prepared, too */
	if (code == -EINTR)
		kx_err_set(err, code, "the counting was interrupted");
	if (code != -EINTR) {
		kx_stop_listen(false);
		sigprocmask(SIG_SETMASK, &old, NULL);
	}
	if (c.signals >= 0)
		close(c.signals);
	free(c.steps.functions);
	free(c.before);
	free(c.now);
	free(c.percent);
	free(c.in);
	return code;
}
