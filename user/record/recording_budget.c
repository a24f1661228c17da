// SPDX-License-Identifier: BSD-2-Clause
#include "record/recording_budget.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "attach/probe_switches.h"
#include "base/array.h"
#include "base/monotonic.h"
#include "doctor/calibrate.h"
#include "doctor/call_cost.h"
#include "record/budget.h"
#include "record/recording_internal.h"
#include "record/target_time.h"
#include "trace/budget_info.h"
#include "tracer/keeper.h"
#include "tracer/uprobe_try.h"

#define MAX_NOTICES 5
/* A call's probes take more in a program, which uses the caches itself: on postgres 13.6 us, measured 11.9. */
#define IN_PROGRAMS 1.15
#define CHANGE_COST 1.5 /* seconds of a CPU that the target uses, for each in which probes are changed: 1.4 to 1.5 on postgres */
#define RECENT_SECONDS 1.0
#define LEAST_COUNTED 0.1 /* what less says of the rest is too vague */
#define MANY 256 /* functions: fewer are attached at once */

/* Without a calibration. */
#define ASSUMED_RECORDED_NS 2000
#define ASSUMED_COUNTED_NS  1000

struct id_list {
	uint32_t *ids;
	size_t n, room;
};

struct kx_recording_budget {
	struct kx_budget budget;
	struct kx_target_time time;
	struct kx_syscall_costs syscalls;
	double cpus; /* that the target used in the last step */
	double cpu, spent; /* seconds at the last step: of the target, of the probes by the kernel side's count */
	/* of the last second or so: the target's CPU time, and how much of it was used where probes are that count no calls */
	double recent, recent_uncounted;
	double uncounted_seconds, uncounted_lives, unseen; /* at the last step: see struct kx_follow_result, struct kx_target_time */
	unsigned notices;
	bool waited; /* functions have waited, and their probes have not been checked since */
	struct id_list out, back; /* of this step: probes to take out, to put back */
};

size_t kx_recording_budget_many(const struct recording *r)
{
	/* a selection by rates is within the budget */
	return r->o->max_overhead > 0 && !r->o->select.wanted ? MANY : 0;
}

static double to_ns(const struct recording *r, uint32_t ticks, uint32_t probe_scale)
{
	return (double)ticks * probe_scale / KX_PROBE_SCALE_ONE * 1e9 / (double)kx_tracer_clock(r->tracer)->tsc_hz;
}

/* Whether the exits of most of its calls have moved to return instructions, as they do in some processes. */
static bool has_moved(const struct recording *r, const struct kx_function *f)
{
	return r->instruction_exits[f->id] > r->calls[f->id] / 2 || kx_probes_exit_has_moved(r->probes.user, f);
}

static uint8_t kind_of(const struct recording *r, const struct kx_function *f)
{
	uint8_t moved = kx_calibrate_moved_kind(&f->plan);

	return moved && has_moved(r, f) ? moved : kx_calibrate_nearest_kind(&f->plan);
}

static void set_probe_costs(struct recording *r, size_t index)
{
	struct kx_recording_budget *rb = r->budget;
	struct kx_budget_function *b = &rb->budget.functions[index];
	const struct kx_function *f = &r->sel.functions[index];

	b->recorded_ns = ASSUMED_RECORDED_NS;
	b->counted_ns = ASSUMED_COUNTED_NS;
	if (!kx_select_is_probed_by(&r->sel, f, KX_PROBE_UPROBE)) {
		b->recorded_ns = rb->syscalls.recorded_ns;
		b->counted_ns = rb->syscalls.counted_ns;
	} else if (r->costs.nkinds) {
		uint8_t kind = kind_of(r, f);
		uint32_t scale = kx_recording_probe_scale(r, kx_calibrate_steps(kind));

		b->recorded_ns = to_ns(r, r->costs.kinds[kind].cost, scale);
		b->counted_ns = to_ns(r, r->costs.kinds[kind].counted, scale);
	}
	if (r->o->count) { /* entries only; sampling saves nothing */
		if (r->costs.nkinds && f->plan.entry.cost <= KX_COST_STEPPED)
			b->counted_ns = to_ns(r, r->costs.kinds[1 + f->plan.entry.cost].counted, KX_PROBE_SCALE_ONE);
		b->recorded_ns = b->counted_ns;
	}
	b->recorded_ns *= IN_PROGRAMS;
	b->counted_ns *= IN_PROGRAMS;
	if (b->counted_ns > b->recorded_ns)
		b->counted_ns = b->recorded_ns;
	kx_tracer_set_cost(r->tracer, f->id, (uint32_t)b->recorded_ns, (uint32_t)b->counted_ns);
}

static void set_costs(struct recording *r, size_t index)
{
	struct kx_recording_budget *rb = r->budget;
	struct kx_budget_function *b = &rb->budget.functions[index];
	const struct kx_function *f = &r->sel.functions[index];

	set_probe_costs(r, index);
	b->stays = !kx_probes_can_take_out(r->probes.user, f->id);
	b->fixed = r->o->count ? b->stays : kx_tracer_trigger(r->tracer, f->id, NULL);
	b->together = kx_probes_switch(r->probes.user, f->id);
	b->waits = !b->fixed && !b->stays && kx_probes_are_out(r->probes.user, f->id);
	if (b->waits)
		b->level = KX_BUDGET_OUT;
	rb->waited |= b->waits;
}

static uint64_t calls(void *ctx, size_t index)
{
	const struct recording *r = ctx;

	return kx_tracer_budget_calls(r->tracer, r->sel.functions[index].id);
}

static bool is_out(void *ctx, size_t index)
{
	const struct recording *r = ctx;

	return kx_probes_are_out(r->probes.user, r->sel.functions[index].id);
}

static uint32_t divide(void *ctx, size_t index)
{
	const struct recording *r = ctx;

	return kx_probes_divide(r->probes.user, r->sel.functions[index].id);
}

static double extra_ns(void *ctx, double pause)
{
	const struct recording *r = ctx;
	double ticks = pause * (double)kx_tracer_clock(r->tracer)->tsc_hz / 2;
	uint64_t half = ticks < UINT32_MAX ? (uint64_t)ticks : UINT32_MAX;
	const struct kx_probe_pauses pauses = { half, 2 * half, half };
	struct kx_probe_taken taken = { 0 };

	if (r->costs.nkinds <= KX_COST_EMULATED + 1)
		return 0;
	kx_probe_taken_add_pauses(&taken, &r->costs, &r->costs.kinds[KX_COST_EMULATED + 1], &pauses);
	return to_ns(r, (uint32_t)taken.cost, kx_recording_probe_scale(r, false));
}

static uint32_t one_in(uint8_t level)
{
	return level == KX_BUDGET_OUT ? 0 : 1u << level;
}

/* A step of the budget, in the trace. */
static void put_note(struct recording *r, const struct kx_function *f,
		     const struct kx_budget_function *b)
{
	const uint64_t payload[] = { one_in(b->level), b->calls };
	struct kx_wire_record rec = { .kind = KX_EVENT_BUDGET, .func = f->id, .words = 2 };

	if (!r->collector)
		return; /* there is no trace */
	for (size_t i = 0; i < r->targets.npids && !rec.tid; i++)
		if (!kx_target_has_ended(&r->targets, i))
			rec.tid = (uint32_t)r->targets.pids[i];
	/* without memory the summary still has it */
	kx_collector_put(r->collector, &rec, payload);
}

static void add_id(struct id_list *list, uint32_t id)
{
	/* without memory its calls are only counted */
	if (!KX_ARRAY_RESERVE(list->ids, list->room, list->n))
		list->ids[list->n++] = id;
}

static void tell(struct recording *r, const struct kx_function *f, const struct kx_budget_function *b)
{
	struct kx_recording_budget *rb = r->budget;

	if (rb->notices++ > MAX_NOTICES)
		return;
	if (rb->notices > MAX_NOTICES)
		kx_notice(&r->notices, "more functions do not fit --max-overhead; %s will show them",
			  r->o->count ? "the table" : "'kxray report'");
	else if (b->level == KX_BUDGET_OUT)
		kx_notice(&r->notices, "%s is called too often for --max-overhead: its probes are taken out",
			  f->sym->pretty);
	else
		kx_notice(&r->notices, "%s is called too often for --max-overhead: one call in %u is recorded%s",
			  f->sym->pretty, (unsigned)one_in(b->level),
			  b->stays ? "; its probes cannot be taken out singly" : "");
}

static void change(void *ctx, size_t index, uint8_t from)
{
	struct recording *r = ctx;
	struct kx_recording_budget *rb = r->budget;
	const struct kx_budget_function *b = &rb->budget.functions[index];
	const struct kx_function *f = &r->sel.functions[index];
	bool out = b->level == KX_BUDGET_OUT;

	kx_tracer_set_level(r->tracer, f->id, out ? KX_BUDGET_NONE : b->level);
	if (out)
		add_id(&rb->out, f->id);
	else if (from == KX_BUDGET_OUT)
		add_id(&rb->back, f->id);
	if (b->limited) /* not the first time that it is in */
		put_note(r, f, b);
	if (!from)
		tell(r, f, b);
}

/* A process that has ended needs none. */
static void tell_failure(struct recording *r, int code, const struct kx_err *why)
{
	if (code && code != -ESRCH && r->budget->notices++ <= MAX_NOTICES)
		kx_notice(&r->notices, "probes that --max-overhead had taken out cannot be put back: %s",
			  why->text);
}

static void changed(void *ctx)
{
	struct recording *r = ctx;
	struct kx_recording_budget *rb = r->budget;
	double begin = kx_monotonic_seconds(), put_in, end;
	struct kx_err why;
	int code = 0;

	if (rb->out.n)
		code = kx_probes_take_out(r->probes.user, rb->out.ids, rb->out.n, &why);
	put_in = kx_monotonic_seconds();
	if (!code && rb->back.n)
		code = kx_probes_put_back(r->probes.user, rb->back.ids, rb->back.n, &why);
	tell_failure(r, code, &why);
	end = kx_monotonic_seconds();
	if (rb->out.n + rb->back.n)
		kx_budget_charge(&rb->budget, (end - begin) * CHANGE_COST * rb->cpus, end - put_in);
	rb->out.n = rb->back.n = 0;
}

/* Functions may have joined. Those with a trigger do not wait. */
static int update_functions(struct recording *r)
{
	struct kx_budget *b = &r->budget->budget;
	size_t before = b->n;
	int code = kx_budget_grow(b, r->sel.nfunctions);

	for (size_t i = before; i < b->n && !code; i++) {
		uint32_t id = r->sel.functions[i].id;

		if (kx_tracer_trigger(r->tracer, id, NULL) && kx_probes_are_out(r->probes.user, id))
			add_id(&r->budget->back, id);
	}
	if (r->budget->back.n)
		changed(r);
	for (size_t i = before; i < b->n && !code; i++)
		set_costs(r, i);
	for (size_t i = 0; i < before && r->probes.exits_moved; i++)
		if (has_moved(r, &r->sel.functions[i]))
			set_probe_costs(r, i);
	return code;
}

/* System calls and kernel functions are in no calibration; the latter cost about as much. */
static void measure_syscalls(struct recording *r)
{
	struct kx_syscall_costs *costs = &r->budget->syscalls;
	struct kx_err why;

	*costs = (struct kx_syscall_costs){ ASSUMED_RECORDED_NS, ASSUMED_COUNTED_NS };
	if (kx_select_has_others(&r->sel, KX_PROBE_UPROBE) &&
	    kx_syscall_costs_measure(kx_tracer_prog_mechanism(r->tracer, KX_PROG_RETURN), costs, &why))
		kx_notice(&r->notices, "what a traced system call costs is not known (%s), so "
				       "--max-overhead assumes %d ns", why.text, ASSUMED_RECORDED_NS);
}

/* A count cannot be sampled. */
static void tell_unbounded(struct recording *r)
{
	const struct kx_budget *b = &r->budget->budget;
	size_t n = 0;

	for (size_t i = 0; i < b->n && r->o->count; i++)
		n += r->sel.functions[i].traced && b->functions[i].stays;
	if (n)
		kx_notice(&r->notices,
			  "the probes of %zu function%s cannot be taken out singly, so --max-overhead does not bound "
			  "what counting their calls takes",
			  n, n == 1 ? "" : "s");
}

/* On a busy machine kxray would react late, and probes that are to be taken out would stay in for that long. */
static void take_priority(void)
{
	setpriority(PRIO_PROCESS, 0, KX_KEEPER_NICE);
	kx_keeper_hurry();
}

int kx_recording_budget_begin(struct recording *r, struct kx_err *err)
{
	const struct kx_budget_ops ops = {
		.calls = calls, .change = change, .extra_ns = extra_ns, .is_out = is_out, .divide = divide,
		.changed = changed, .ctx = r,
	};
	int code;

	if (!(r->o->max_overhead > 0))
		return 0;
	r->budget = calloc(1, sizeof(*r->budget));
	if (!r->budget)
		return kx_err_set(err, -ENOMEM, "no memory for the budget");
	take_priority();
	measure_syscalls(r);
	if (!r->costs.nkinds && kx_recording_has_functions(r))
		kx_notice(&r->notices, "what a probe costs is not known, so --max-overhead assumes %d ns a call",
			  ASSUMED_RECORDED_NS);
	code = kx_budget_init(&r->budget->budget, r->o->max_overhead / 100, &ops, 0, kx_monotonic_seconds());
	if (!code)
		code = update_functions(r);
	if (!code)
		tell_unbounded(r);
	kx_target_time_init(&r->budget->time, r);
	r->budget->cpu = kx_target_time_seconds(&r->budget->time, r);
	return code ? kx_err_set(err, code, "no memory for the budget") : 0;
}

/* From the recording's beginning until the last probes that had waited went in. */
static double all_in_seconds(const struct kx_budget *b)
{
	return b->let_in > b->start ? b->let_in - b->start : 0;
}

/*
 * The share of the target's CPU time in which calls are counted. @cpu, @seconds: since the last step. Forked processes have the probes of their parents
 * in their memory at once, but count nothing before they have links.
 */
static double counted_share(struct recording *r, double cpu, double seconds)
{
	struct kx_recording_budget *rb = r->budget;
	const double unseen = rb->time.unseen - rb->unseen, fade = 1 / (1 + seconds / RECENT_SECONDS);
	struct kx_follow_result f = { 0 };
	double lives, share;

	if (r->follow)
		kx_follow_get_result(r->follow, &f);
	lives = f.uncounted_lives - rb->uncounted_lives;
	rb->recent = rb->recent * fade + cpu;
	rb->recent_uncounted = rb->recent_uncounted * fade + f.uncounted_seconds - rb->uncounted_seconds + (lives < unseen ? lives : unseen);
	rb->uncounted_seconds = f.uncounted_seconds;
	rb->uncounted_lives = f.uncounted_lives;
	rb->unseen = rb->time.unseen;
	share = rb->recent > 0 ? 1 - rb->recent_uncounted / rb->recent : 1;
	return share > LEAST_COUNTED ? share : LEAST_COUNTED;
}

void kx_recording_budget_scale(struct recording *r)
{
	for (size_t i = 0; r->budget && i < r->budget->budget.n; i++)
		set_probe_costs(r, i);
}

int kx_recording_budget_poll(struct recording *r, struct kx_err *err)
{
	struct kx_recording_budget *rb = r->budget;
	double now, spent, cpu;
	struct kx_err why;

	if (!rb)
		return 0;
	if (kx_probes_are_settling(r->probes.user))
		tell_failure(r, kx_probes_settle(r->probes.user, &why), &why);
	now = kx_monotonic_seconds();
	spent = (double)kx_tracer_budget_spent_ns(r->tracer) * 1e-9;
	if (!kx_budget_is_due(&rb->budget, now, spent - rb->spent))
		return 0;
	if (update_functions(r))
		return kx_err_set(err, -ENOMEM, "no memory for the budget");
	cpu = kx_target_time_seconds(&rb->time, r);
	rb->cpus = now > rb->budget.then ? (cpu - rb->cpu) / (now - rb->budget.then) : 0;
	kx_budget_step(&rb->budget, now, cpu - rb->cpu, counted_share(r, cpu - rb->cpu, now - rb->budget.then));
	rb->spent = spent;
	rb->cpu = cpu;
	if (rb->waited && !kx_budget_waits(&rb->budget)) {
		rb->waited = false;
		kx_notice(&r->notices, "all probes are in, %.1f s after the recording's beginning (--max-overhead lets them in "
				       "group by group)", all_in_seconds(&rb->budget));
		kx_recording_check_probes(r, r->targets.procs, r->targets.npids);
	}
	return 0;
}

bool kx_recording_budget_waits(const struct recording *r)
{
	return r->budget &&
	       (kx_budget_waits(&r->budget->budget) || kx_probes_are_settling(r->probes.user));
}

void kx_recording_budget_stop(struct recording *r)
{
	if (r->budget)
		kx_budget_end(&r->budget->budget, kx_monotonic_seconds());
}

double kx_recording_budget_out_seconds(const struct recording *r, size_t index)
{
	return r->budget && index < r->budget->budget.n ? r->budget->budget.functions[index].out_seconds : 0;
}

static double taken_percent(const struct kx_budget *b)
{
	return b->own > 0 ? b->spent / b->own * 100 : 0;
}

static struct kx_budget_entry entry_of(const struct recording *r, size_t index)
{
	const struct kx_budget_function *f = &r->budget->budget.functions[index];
	uint32_t id = r->sel.functions[index].id;

	return (struct kx_budget_entry){ .id = id,
					 .one_in = one_in(f->level),
					 .calls = kx_tracer_budget_calls(r->tracer, id),
					 .recorded = r->calls[id],
					 .out_seconds = f->out_seconds };
}

void kx_recording_budget_end(struct recording *r)
{
	struct kx_recording_budget *rb = r->budget;
	struct kx_recording_result *result = r->result;

	if (!rb)
		return;
	result->budget_percent = r->o->max_overhead;
	result->budget_taken_percent = taken_percent(&rb->budget);
	result->budget_waiting = rb->budget.never_in;
	result->budget_all_in_seconds = all_in_seconds(&rb->budget);
	for (size_t i = 0; i < rb->budget.n; i++) {
		const struct kx_budget_function *f = &rb->budget.functions[i];
		struct kx_budget_entry e = entry_of(r, i);
		char text[120];

		result->budget_limited += f->limited;
		result->budget_out += f->limited && f->out_seconds > 0;
		if (f->limited && result->budget_limited <= MAX_NOTICES && !r->o->count)
			kx_notice(&r->notices, "%s: %s", r->sel.functions[i].sym->pretty,
				  kx_budget_entry_text(&e, text, sizeof(text)));
	}
}

int kx_recording_budget_describe(const void *recording, json_t *info)
{
	const struct recording *r = recording;
	const struct kx_recording_budget *rb = r->budget;
	struct kx_budget_info out = { .percent = r->o->max_overhead };
	int code;

	if (!rb)
		return 0;
	out.taken_percent = taken_percent(&rb->budget);
	out.all_in_seconds = all_in_seconds(&rb->budget);
	out.entries = calloc(rb->budget.n + 1, sizeof(*out.entries));
	if (!out.entries)
		return -ENOMEM;
	for (size_t i = 0; i < rb->budget.n; i++)
		if (rb->budget.functions[i].limited)
			out.entries[out.n++] = entry_of(r, i);
	code = kx_budget_info_write(&out, info);
	kx_budget_info_free(&out);
	return code;
}

void kx_recording_budget_free(struct recording *r)
{
	if (!r->budget)
		return;
	kx_budget_free(&r->budget->budget);
	kx_target_time_free(&r->budget->time);
	free(r->budget->out.ids);
	free(r->budget->back.ids);
	free(r->budget);
	r->budget = NULL;
}
