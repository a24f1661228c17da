// SPDX-License-Identifier: BSD-2-Clause
/*
 * Perun's profile (docs/profile.rst) as Perun 0.21.8 loads, shows, diffs and
 * postprocesses it. Perun has no schema: the file has what Perun's commands look up, even fields
 * that the document does not require (machine.host, trace of every resource, a unit for header.type).
 * Amounts are nanoseconds, as Perun's trace collector stores them whatever its unit says. Of a call whose
 * exit was not recorded ("repaired": 1) the amount is an upper bound and exclusive is 0.
 *
 * Default form: calls of one function from one stack in one thread are one resource type, with
 * parallel lists; all lists of a type have the same length, since Perun silently cuts them to the
 * shortest. The file has these lists type by type while calls come in order of time, so the
 * trace is walked twice: to count each type's calls, then to store them in their places
 * (stacks.h). Memory grows with stacks and threads, not with calls.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "exporters/perun/head.h"
#include "exporters/perun/resources.h"
#include "exporters/perun/stacks.h"
#include "exporters/perun/uids.h"

struct frame {
	uint64_t order;
	uint64_t migrations; /* of the thread when the call began */
	uint64_t callees;    /* ns: amounts of direct callees that have ended, as in the profile */
	uint32_t stack, path;
};

struct thread {
	struct frame *frames;
	size_t nframes, size;
	uint64_t migrations;
};

struct perun {
	const struct kx_export *x;
	bool exclusive, snapshots; /* options */
	struct thread *threads;    /* by index */
	struct kx_perun_stacks stacks;
	struct kx_perun_uids uids;
	bool first; /* no snapshot has been written */
	uint64_t first_tsc;
};

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct perun *p = ctx;
	struct thread *thread = &p->threads[t->index];
	const struct kx_perun_function *function =
		kx_perun_function(&p->uids, p->x->names, call->func);
	struct frame *f;

	if (!function || KX_ARRAY_RESERVE(thread->frames, thread->size, thread->nframes))
		return -ENOMEM;
	f = &thread->frames[thread->nframes];
	*f = (struct frame){ .migrations = thread->migrations, .stack = KX_PERUN_NO_STACK };
	if (!p->snapshots) {
		uint32_t parent = thread->nframes ? f[-1].path : KX_PERUN_OUTERMOST | t->index;

		f->stack = kx_perun_stack_index(&p->stacks, parent, function, t->index, &f->path);
		if (f->stack == KX_PERUN_NO_STACK)
			return -ENOMEM;
	}
	f->order = p->uids.items[function->uid].calls++;
	thread->nframes++;
	return 0;
}

static int on_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	struct perun *p = ctx;

	(void)tsc;
	p->threads[t->index].migrations += t->depth && cpu != t->cpu;
	return 0;
}

/*
 * The times where a call begins and ends are rounded to nanoseconds, and all others are differences
 * of these. So calls stay nested and a call's time is its own and that of its callees exactly,
 * which is not so if each time is rounded by itself. Without the probes' own time, callees can take
 * a nanosecond more than their caller after rounding.
 */
static struct kx_perun_call call_of(const struct perun *p, struct thread *thread,
				    const struct frame *f, const struct kx_call *call,
				    enum kx_leave how)
{
	uint64_t hz = p->x->tsc_hz, begin = call->enter - p->first_tsc;
	struct kx_perun_call values = {
		.timestamp = kx_trace_ns(begin, hz),
		.order = f->order,
		.migrations = (uint32_t)(thread->migrations - f->migrations),
		.cpu = call->cpu,
		.repaired = how == KX_LEAVE_REPAIRED,
	};

	values.amount = kx_trace_ns(begin + call->took, hz) - values.timestamp;
	if (values.amount < f->callees)
		values.amount = f->callees;
	if (!values.repaired)
		values.exclusive = values.amount - f->callees;
	if (thread->nframes)
		thread->frames[thread->nframes - 1].callees +=
			values.repaired ? f->callees : values.amount;
	if (p->exclusive)
		values.amount = values.exclusive;
	return values;
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct perun *p = ctx;
	struct thread *thread = &p->threads[t->index];
	struct frame *f = &thread->frames[--thread->nframes];
	struct kx_perun_call values;
	struct kx_perun_stack *stack;
	int r;

	(void)tsc;
	if (how == KX_LEAVE_OPEN)
		return 0;
	if (!p->snapshots && !p->stacks.calls) {
		stack = &p->stacks.items[f->stack];
		stack->ncalls++;
		stack->repaired |= how == KX_LEAVE_REPAIRED;
		return 0;
	}
	values = call_of(p, thread, f, call, how);
	if (p->snapshots) {
		kx_text_str(p->x->out, p->first ? "\n" : ",\n");
		p->first = false;
		kx_perun_resource(p->x, t, call, &values);
	} else {
		r = kx_perun_stacks_store(&p->stacks, f->stack, &values);
		if (r)
			return r;
	}
	return p->x->out->error;
}

static int walk(struct perun *p, struct kx_err *err)
{
	const struct kx_export *x = p->x;
	struct kx_call_visitor v = {
		.enter = on_enter, .leave = on_leave, .cpu = on_cpu, .ctx = p,
	};
	struct kx_err own = { 0 };
	int r;

	for (size_t i = 0; i < kx_calls_nthreads(x->calls); i++)
		p->threads[i].nframes = p->threads[i].migrations = 0;
	for (size_t i = 0; i < p->uids.count; i++)
		p->uids.items[i].calls = 0;
	/* In order of time, because call-order counts the calls of all threads. */
	r = kx_calls_walk(x->calls, KX_ORDER_TIME, &v, x->progress, x->progress_ctx, &own);
	if (!r)
		return 0;
	if (own.code) {
		*err = own;
		return r;
	}
	if (r == -EBADMSG)
		return kx_err_set(err, r, "perun: the trace changed while it was read");
	return kx_err_set(err, r, "perun: %s", strerror(-r));
}

static int put_snapshots(struct perun *p, struct kx_err *err)
{
	int r;

	kx_text_str(p->x->out, "\"snapshots\":[{\"time\":\"0.0\",\"resources\":[");
	p->first = true;
	r = walk(p, err);
	kx_text_str(p->x->out, "\n],\"models\":[]}]}\n");
	return r;
}

static int put_aggregated(struct perun *p, const char *workload, struct kx_err *err)
{
	struct kx_text_out *o = p->x->out;
	int r = walk(p, err);

	if (!r)
		r = kx_perun_stacks_place(&p->stacks, err);
	for (size_t i = 0; !r && i < p->stacks.count; i++)
		if (p->stacks.items[i].ncalls)
			p->stacks.items[i].number = p->uids.items[p->stacks.items[i].uid].types++;
	if (!r && p->stacks.calls)
		r = walk(p, err);
	if (r)
		return r;
	kx_text_str(o, "\"resources\":{");
	r = kx_perun_lists(p->x, &p->stacks);
	kx_text_str(o, "\n},\n\"resource_type_map\":{");
	if (!r)
		r = kx_perun_types(p->x, &p->stacks, workload);
	kx_text_str(o, "\n},\n\"models\":[]}\n");
	return r == -ENOMEM ? kx_err_set(err, r, "perun: out of memory") : r;
}

static void notify(const struct kx_export *x)
{
	const struct kx_calls_totals *t = kx_calls_get_totals(x->calls);
	char text[160];

	if (!t->open || !x->notice)
		return;
	snprintf(text, sizeof(text), "perun: %llu calls that had not ended are left out",
		 (unsigned long long)t->open);
	x->notice(x, text);
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct perun p = {
		.x = x,
		.exclusive = x->option(x, "perun-exclusive") != NULL,
		.snapshots = x->option(x, "perun-snapshots") != NULL,
		.first_tsc = kx_calls_get_totals(x->calls)->first_tsc,
	};
	const char *origin = x->option(x, "perun-origin");
	char *workload;
	int r;

	if (origin && (strlen(origin) != 40 ||
		       strspn(origin, "0123456789abcdef") != 40))
		return kx_err_set(err, -EINVAL, "--perun-origin takes the 40 hexadecimal digits of "
				  "'git rev-parse HEAD', not '%s'", origin);
	workload = kx_perun_workload(x);
	p.threads = calloc(kx_calls_nthreads(x->calls) + 1, sizeof(*p.threads));
	r = workload && p.threads ? kx_perun_head(x, workload) : -ENOMEM;
	if (r == -ENOMEM)
		kx_err_set(err, r, "perun: out of memory");
	if (!r)
		r = p.snapshots ? put_snapshots(&p, err) : put_aggregated(&p, workload, err);
	if (!r)
		notify(x);

	for (size_t i = 0; p.threads && i < kx_calls_nthreads(x->calls); i++)
		free(p.threads[i].frames);
	free(p.threads);
	kx_perun_stacks_free(&p.stacks);
	kx_perun_uids_free(&p.uids);
	free(workload);
	return r;
}

static const struct kx_export_option options[] = {
	{ "perun-snapshots", NULL,
	  "one object per call, as in Perun's document (ten times the size)" },
	{ "perun-exclusive", NULL, "amount is the time without callees (for flame graphs)" },
	{ "perun-origin", "COMMIT",
	  "the 40-digit commit that was traced; 'perun add' needs it" },
	{ NULL, NULL, NULL },
};

const struct kx_exporter kx_exporter_perun = {
	.name = "perun",
	.suffix = ".perf",
	.summary = "profile of Perun (JSON, nanoseconds)",
	.options = options,
	.open_hint = "add it to Perun: perun add FILE",
	.run = run,
};
