// SPDX-License-Identifier: BSD-2-Clause
/*
 * Triggers that fire while a dump is due, is being written, or was just written join that dump or
 * the next one. A dump starts when the collector's watermark has passed its trigger: by then every
 * older record is out of the rings.
 */
#include "record/flight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/each_number.h"
#include "base/monotonic.h"
#include "base/output.h"
#include "base/proc_stat.h"
#include "record/flight_internal.h"
#include "select/pattern_matches.h"

/* A thread that was preempted in the middle of writing a record may hold the watermark back. */
#define MAX_WAIT_SECONDS 2.0

/* Before anything is attached: an output that cannot be written must fail now, not at the first
 * dump. */
static int try_output(const struct kx_flight *f, struct kx_err *err)
{
	char *path = kx_numbered_path(f->c.output, 1);
	struct kx_output output;
	int code =
		path ? kx_output_open(&output, path, err) : kx_err_set(err, -ENOMEM, "no memory");

	if (path)
		kx_output_close(&output);
	free(path);
	return code;
}

static int parse_patterns(struct kx_flight *f, struct kx_err *err)
{
	int code = 0;

	f->patterns = calloc(f->o.ntriggers + 1, sizeof(*f->patterns));
	f->matched = calloc(f->o.ntriggers + 1, sizeof(*f->matched));
	if (!f->patterns || !f->matched)
		return kx_err_set(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < f->o.ntriggers && !code; i++)
		code = kx_pattern_parse(f->o.triggers[i].pattern, &f->patterns[i], err);
	return code;
}

static int make_store(struct kx_flight *f, struct kx_err *err)
{
	const struct kx_cpus *cpus = kx_tracer_cpus(f->c.tracer);

	return kx_flight_store_new(cpus->online, cpus->n,
				   f->o.bytes ? f->o.bytes : kx_flight_store_default_bytes(cpus->n),
				   &f->store, err);
}

int kx_flight_new(const struct kx_flight_options *o, const struct kx_flight_context *context,
		  struct kx_flight **out, struct kx_err *err)
{
	struct kx_flight *f = calloc(1, sizeof(*f));
	int code;

	if (!f)
		return kx_err_set(err, -ENOMEM, "no memory");
	*out = f;
	f->c = *context;
	f->o = *o;
	code = try_output(f, err);
	if (!code && o->on_dump)
		code = kx_dump_hook_new(o->on_dump, o->on_dump_seconds, f->c.notices, &f->hook, err);
	if (!code)
		code = parse_patterns(f, err);
	if (!code)
		code = make_store(f, err);
	if (!code && kx_dump_request_init(&f->request, f->c.pids, f->c.npids))
		code = kx_err_set(err, -ENOMEM, "no memory");
	if (!code)
		code = kx_dump_process_new(&f->process, err);
	if (code)
		return code;
	kx_collector_keep_in(f->c.collector, f->store);
	kx_process_table_keep_ended(f->c.processes);
	return 0;
}

/* Functions */

static int add_condition(struct kx_flight *f, const struct kx_function *fn, const struct kx_trigger *t, struct kx_err *err)
{
	uint16_t number;
	int code = f->c.add_condition(f->c.condition_ctx, fn, &t->condition, &number, err);

	if (!code)
		code = kx_tracer_add_trigger_if(f->c.tracer, fn->id, number, t->over_ns, err);
	if (code == -EEXIST)
		return kx_err_set(err, code, "more than one --trigger with a condition is about %s: write them as one, with ||", fn->sym->pretty);
	return code;
}

static bool names(const struct kx_pattern *p, const struct kx_selection *sel, const struct kx_function *fn)
{
	return kx_pattern_matches_module(p, sel->modules[fn->module].module) && kx_pattern_matches_symbol(p, fn->sym);
}

bool kx_flight_is_trigger(const struct kx_flight_options *o, const struct kx_selection *sel, const struct kx_function *f)
{
	bool found = false;

	for (size_t i = 0; i < o->ntriggers && !found; i++) {
		struct kx_pattern pattern;

		if (kx_pattern_parse(o->triggers[i].pattern, &pattern, NULL))
			continue; /* kx_flight_new refuses it */
		found = names(&pattern, sel, f);
		kx_pattern_free(&pattern);
	}
	return found;
}

static int add_function(struct kx_flight *f, const struct kx_function *fn, size_t *blind,
			struct kx_err *err)
{
	int code = 0;

	for (size_t i = 0; i < f->o.ntriggers && !code; i++) {
		const struct kx_trigger *t = &f->o.triggers[i];

		if (!names(&f->patterns[i], f->c.sel, fn))
			continue;
		if (!t->on_entry && !(t->conditional && !t->over_ns) && fn->plan.exit_kind == KX_EXITS_NONE) {
			++*blind;
			continue;
		}
		f->matched[i] = true;
		code = t->conditional ? add_condition(f, fn, t, err) :
					kx_tracer_add_trigger(f->c.tracer, fn->id, t->on_entry, t->over_ns, err);
	}
	return code;
}

int kx_flight_add_functions(struct kx_flight *f, size_t first, struct kx_err *err)
{
	const struct kx_selection *sel = f->c.sel;
	size_t blind = 0;
	int code = 0;

	for (size_t i = first; i < sel->nfunctions && !code; i++)
		if (sel->functions[i].traced)
			code = add_function(f, &sel->functions[i], &blind, err);
	for (size_t i = 0; i < f->o.ntriggers && !code && !first && !f->c.functions_join; i++) {
		if (f->matched[i])
			continue;
		if (blind)
			return kx_err_set(
				err, -EOPNOTSUPP,
				"the trigger '%s' fires when a call ends, but the exits of its "
				"functions are not traced; use '%s@entry', or another --exits",
				f->o.triggers[i].text, f->o.triggers[i].pattern);
		return kx_err_set(
			err, -ENOENT,
			"the trigger '%s' names no function that is traced: -x leaves it out, "
			"or it cannot be traced ('kxray functions --left-out' shows why)",
			f->o.triggers[i].text);
	}
	return code;
}

void kx_flight_begin(struct kx_flight *f)
{
	struct kx_flight_stats stats;

	kx_flight_store_stats(f->store, &stats);
	kx_notice(f->c.notices,
		  "flight recorder: the newest %llu KiB of each CPU are kept in memory (%llu KiB in "
		  "all); 'kill -USR1 %d' writes them",
		  (unsigned long long)(stats.bytes_per_cpu >> 10),
		  (unsigned long long)(stats.bytes >> 10), (int)getpid());
	f->begun = -1e9;
	kx_tracer_arm_triggers(f->c.tracer);
}

/* Triggers */

static void on_trigger(void *ctx, const struct kx_trigger_event *ev)
{
	struct kx_flight *f = ctx;
	struct kx_reason why = { .event = *ev };
	struct kx_trigger_func limits = { 0 };

	why.tsc = kx_clock_to_tsc(kx_tracer_clock(f->c.tracer), ev->clock);
	if (ev->kind == KX_TRIGGER_END) {
		kx_dump_request_process_ended(&f->request, &why, kx_monotonic_seconds());
		return;
	}
	why.kind = ev->kind == KX_TRIGGER_SLOW ? KX_REASON_SLOW : ev->kind == KX_TRIGGER_IF ? KX_REASON_CONDITION : KX_REASON_ENTRY;
	if (kx_tracer_trigger(f->c.tracer, ev->func, &limits))
		why.limit_ns = limits.over_ns;
	kx_dump_request_add(&f->request, &why, kx_monotonic_seconds());
}

void kx_flight_request_dump(struct kx_flight *f)
{
	const struct kx_reason why = { .kind = KX_REASON_SIGNAL, .tsc = kx_tsc_read() };

	kx_dump_request_add(&f->request, &why, kx_monotonic_seconds());
}

void kx_flight_target_ended(struct kx_flight *f, pid_t pid)
{
	/* Its trigger event is sent before its pidfd reports the end. */
	kx_tracer_read_triggers(f->c.tracer, on_trigger, f);
	kx_dump_request_target_ended(&f->request, pid, kx_tsc_read(), kx_monotonic_seconds());
}

/* Dumps */

static void dump_failed(struct kx_flight *f, int code, const char *what, const char *why)
{
	kx_err_set(&f->last_err, code, "dump %u (%s) could not be written: %s%s; nothing of it is kept", f->number,
		   f->text, what, why);
	f->failed++;
	kx_notice(f->c.notices, "%s", f->last_err.text);
	free(f->path);
	f->path = NULL;
}

static void start_dump(struct kx_flight *f, bool final)
{
	int code;

	f->cause = f->request.caught ? KX_FILE_CAUGHT : KX_FILE_REQUESTED;
	kx_dump_request_clear(&f->request);
	f->begun = kx_monotonic_seconds();
	f->number++;
	f->final = final;
	f->path = kx_numbered_path(f->c.output, f->number);
	kx_reason_text(&f->request.why, f->c.sel, f->text, sizeof(f->text));
	code = f->path ? kx_dump_process_start(f->process, f->path, kx_flight_write, f) : -ENOMEM;
	if (code)
		dump_failed(f, code, "its process cannot be started: ", strerror(-code));
}

static void reap(struct kx_flight *f, bool wait)
{
	const struct kx_dump_outcome *out;

	if (!kx_dump_process_reap(f->process, wait, &out))
		return;
	if (out->code) {
		dump_failed(f, out->code, "", out->err.text);
		return;
	}
	f->dumps++;
	f->bytes += out->counts.bytes;
	snprintf(f->last, sizeof(f->last), "%s", f->path);
	/* without memory it stays: nothing is removed that might be wanted */
	kx_numbered_add(&f->files, f->c.output, f->number, f->cause, f->o.dumps);
	kx_notice(f->c.notices, "wrote %s (%s): %llu events of %.3f s", f->path, f->text,
		  (unsigned long long)out->counts.events, out->seconds);
	if (f->hook)
		kx_dump_hook_add(f->hook, f->path);
	free(f->path);
	f->path = NULL;
}

static int is_other(void *ctx, pid_t tid)
{
	return (uint32_t)tid != *(const uint32_t *)ctx;
}

/* Whether all threads of the process have ended; it may still be a zombie. */
static bool is_over(uint32_t pid)
{
	char path[64], buffer[KX_PROC_STAT_SIZE];
	const char *state;
	int others;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	others = kx_each_number(path, is_other, &pid);
	if (others)
		return others < 0;
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	state = kx_proc_stat(path, 3, buffer);
	return !state || *state == 'Z' || *state == 'X';
}

/*
 * The thread that reports the end of its process is not always the last one to end: others may be
 * preempted while they exit, and their end records come later.
 */
static bool still_ending(struct kx_flight *f)
{
	if (!f->request.process_ending)
		return false;
	if (!is_over(f->request.why.event.tgid))
		return true;
	f->request.process_ending = false;
	f->request.newest = kx_tsc_read();
	return false;
}

void kx_flight_poll(struct kx_flight *f)
{
	double now;

	kx_tracer_read_triggers(f->c.tracer, on_trigger, f);
	reap(f, false);
	if (f->hook)
		kx_dump_hook_poll(f->hook);
	now = kx_monotonic_seconds();
	if (kx_flight_dump_pending(f) &&
	    (now - f->request.since > MAX_WAIT_SECONDS ||
	     (!still_ending(f) && kx_collector_watermark(f->c.collector) > f->request.newest)))
		start_dump(f, false);
	if (!f->request.due && now - f->begun >= f->o.interval)
		kx_tracer_arm_triggers(f->c.tracer);
}

bool kx_flight_dump_pending(const struct kx_flight *f)
{
	return f->request.due && !kx_dump_process_runs(f->process);
}

int kx_flight_end(struct kx_flight *f, bool asked, struct kx_err *err)
{
	struct kx_reason end = { .kind = KX_REASON_END, .tsc = kx_tsc_read() };

	kx_tracer_read_triggers(f->c.tracer, on_trigger, f);
	/* Without a dump so far, the end of the last process was not reported. */
	if (!f->request.due && (asked || f->request.uncovered_end || !f->number))
		kx_dump_request_add(&f->request, &end, kx_monotonic_seconds());
	reap(f, true);
	if (f->request.due)
		start_dump(f, true);
	reap(f, true);
	if (!f->failed)
		return 0;
	*err = f->last_err;
	return err->code;
}

void kx_flight_finish_hooks(struct kx_flight *f)
{
	if (f->hook)
		kx_dump_hook_finish(f->hook);
}

void kx_flight_get_result(const struct kx_flight *f, struct kx_flight_result *out)
{
	struct kx_flight_stats stats;
	uint64_t lost;

	kx_flight_store_stats(f->store, &stats);
	*out = (struct kx_flight_result){ .dumps = f->dumps,
					  .failed = f->failed,
					  .kept = (unsigned)f->files.count,
					  .merged = f->request.merged +
						    kx_tracer_triggers_merged(f->c.tracer, &lost),
					  .bytes = f->bytes,
					  .memory = stats.bytes };
	out->merged += lost;
	if (f->hook)
		kx_dump_hook_get_counts(f->hook, &out->hooks);
	snprintf(out->last, sizeof(out->last), "%s", f->last);
}

void kx_flight_free(struct kx_flight *f)
{
	if (!f)
		return;
	if (f->process)
		reap(f, true);
	kx_dump_process_free(f->process);
	kx_dump_hook_free(f->hook);
	for (size_t i = 0; f->patterns && i < f->o.ntriggers; i++)
		kx_pattern_free(&f->patterns[i]);
	free(f->patterns);
	free(f->matched);
	free(f->path);
	kx_numbered_free(&f->files);
	kx_dump_request_free(&f->request);
	kx_flight_store_free(f->store);
	free(f);
}
