// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/record_summary.h"

#include <jansson.h>

#include "base/decimal.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "record/session_info.h"

#define CLOCK_ERROR_WARN_NS 1000
#define MUCH_CPU 10 /* percent */

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void print_dumps(const struct kx_recording_result *r)
{
	const struct kx_flight_result *f = &r->flight;

	kx_print(stderr,
		 "kxray: %u dump%s%s%s, %llu bytes; %llu event%s recorded, %llu lost, %zu "
		 "function%s, %.3f s\n",
		 f->dumps, plural(f->dumps), f->dumps ? ", the newest is " : "", f->last,
		 (unsigned long long)r->bytes, (unsigned long long)r->counts.events,
		 plural(r->counts.events), (unsigned long long)r->counts.lost, r->functions,
		 plural(r->functions), r->seconds);
	if (f->kept < f->dumps)
		kx_print(stderr, "kxray: %u older dump%s removed (--dumps)\n", f->dumps - f->kept,
			 f->dumps - f->kept == 1 ? " was" : "s were");
	if (f->merged)
		kx_print(stderr,
			 "kxray: %llu trigger%s produced no dump: another one was due, being "
			 "written, or had just been written (--dump-interval)\n",
			 (unsigned long long)f->merged, plural(f->merged));
	if (f->failed)
		kx_print(stderr, "kxray: %u dump%s could not be written\n", f->failed,
			 plural(f->failed));
	if (f->hooks.failed || f->hooks.killed || f->hooks.skipped)
		kx_print(stderr, "kxray: --on-dump: %u ran, %u failed, %u killed, %u skipped\n", f->hooks.ran,
			 f->hooks.failed, f->hooks.killed, f->hooks.skipped);
}

static void print_parts(const struct kx_recording_result *r)
{
	const struct kx_collector_counts *c = &r->counts;

	kx_print(stderr,
		"kxray: %llu event%s, %llu lost, %zu function%s, %llu thread%s, %llu bytes in %u file%s, the newest is %s, %.3f s\n",
		(unsigned long long)c->events, plural(c->events), (unsigned long long)c->lost,
		r->functions, plural(r->functions), (unsigned long long)c->threads,
		plural(c->threads), (unsigned long long)r->bytes, r->files, plural(r->files),
		r->newest, r->seconds);
	if (r->files_kept < r->files)
		kx_print(stderr, "kxray: %u older file%s removed (--keep-files)\n",
			r->files - r->files_kept, r->files - r->files_kept == 1 ? " was" : "s were");
}

static void print_losses(const struct kx_collector_counts *c)
{
	static const char *const why[KX_LOSS_REASONS] = {
		"ring buffer full: try a larger --ring-size or fewer functions",
		"too many writers to one ring at once", "a CPU has no ring"
	};

	for (int i = 0; i < KX_LOSS_REASONS; i++)
		if (c->lost_by[i])
			kx_print(stderr, "kxray: %llu lost: %s\n",
				 (unsigned long long)c->lost_by[i], why[i]);
	if (c->lost_unwritten)
		kx_print(stderr, "kxray: %llu lost: the trace could not be written any further\n",
			 (unsigned long long)c->lost_unwritten);
	if (c->lost_partner)
		kx_print(stderr, "kxray: %llu lost: exits whose entry was lost\n",
			 (unsigned long long)c->lost_partner);
	if (c->lost_invalid)
		kx_print(stderr, "kxray: %llu lost: the process has overwritten its own records (--in-process)\n",
			 (unsigned long long)c->lost_invalid);
	if (c->target_damaged)
		kx_print(stderr,
			 "kxray: %u ring%s not read to the end, and what is missing is not counted: the process has overwritten "
			 "the heads (--in-process)\n",
			 c->target_damaged, c->target_damaged == 1 ? " was" : "s were");
	if (c->lost_missed)
		kx_print(stderr,
			 "kxray: %llu lost: hits that the kernel did not report (the CPU was in "
			 "another probe, or too many threads were in one function); some may "
			 "belong to other processes\n",
			 (unsigned long long)c->lost_missed);
	if (c->lost_migrations)
		kx_print(stderr,
			 "kxray: %llu other record%s lost (CPU changes, threads, scheduler, "
			 "samples, "
			 "page faults)\n",
			 (unsigned long long)c->lost_migrations, plural(c->lost_migrations));
}

/*
 * Filters are evaluated when a call begins, exits are recorded by process: an exit without an entry
 * can be one of a call that a filter left out, before the thread got its name, user or CPU.
 */
static void print_orphans(const struct kx_recording_options *o, const struct kx_recording_result *r, uint64_t n)
{
	static const struct {
		uint32_t filter;
		const char *option;
	} filters[] = {
		{ KX_FILTER_COMM, "--comm" },
		{ KX_FILTER_UID, "--uid" },
		{ KX_FILTER_CGROUP, "--cgroup" },
		{ KX_FILTER_CPU, "--cpu" },
	};
	char options[64] = "";
	size_t used = 0;

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (o->filters.which & filters[i].filter)
			used += (size_t)snprintf(options + used, sizeof(options) - used, "%s%s",
						 used ? ", " : "", filters[i].option);
	kx_print(stderr, "kxray: %llu exit%s left out, of calls that began before the recording%s%s%s\n",
		 (unsigned long long)n, plural(n), r->calls_move ? " or were closed before their end" : "",
		 used ? " or did not match " : "", options);
}

static void print_incomplete(const struct kx_recording_options *o, const struct kx_recording_result *r,
			     const struct kx_collector_counts *c)
{
	if (c->repaired)
		kx_print(stderr,
			 "kxray: %llu call%s closed without an exit of their own (%slongjmp, "
			 "exception, nesting limit, thread end)\n",
			 (unsigned long long)c->repaired, plural(c->repaired),
			 r->calls_move ? "other goroutines or coroutines on the same thread, moves to another thread, " : "");
	if (r->return_gaps.threads)
		kx_print(stderr, "kxray: for %.2f s in all, calls of %u thread%s were recorded without their exits, so that another program could "
				 "remove its probes\n",
			 (double)r->return_gaps.ns * 1e-9, r->return_gaps.threads, plural(r->return_gaps.threads));
	/* the recorder in the process does not know in which thread a call began */
	if (c->repaired && c->threads > 1 && r->calls_move && o->in_process)
		kx_print(stderr, "kxray: warning: the program switches stacks, and where a call ends in another thread than it began in, a later one "
				 "at its place can be shown with the time of both; without --in-process none is\n");
	if (c->reduced)
		kx_print(stderr, "kxray: %llu call%s left out by %s\n",
			 (unsigned long long)c->reduced, plural(c->reduced),
			 o->max_depth && o->min_duration_ns ? "--min-duration and --depth"
			 : o->max_depth			    ? "--depth"
			 : o->min_duration_ns		    ? "--min-duration"
							    : "the nesting limit");
	if (c->too_deep)
		kx_print(stderr,
			 "kxray: %llu of them were nested deeper than %s track%s\n",
			 (unsigned long long)c->too_deep, o->min_duration_ns ? "--min-duration" : "conditions",
			 o->min_duration_ns ? "s" : "");
	if (c->orphans)
		print_orphans(o, r, c->orphans);
}

static void print_conditions(const uint64_t n[KX_CONDITION_COUNTS])
{
	const uint64_t recorded = n[KX_CONDITION_MET] + n[KX_CONDITION_UNKNOWN];
	const uint64_t all = recorded + n[KX_CONDITION_REJECTED] + n[KX_CONDITION_UNDECIDED];
	char met[KX_GROUPED_SIZE], of[KX_GROUPED_SIZE], some[KX_GROUPED_SIZE];

	kx_print(stderr, "kxray: %s of %s call%s met the condition\n", kx_decimal_grouped(met, n[KX_CONDITION_MET]),
		 kx_decimal_grouped(of, all), plural(all));
	if (n[KX_CONDITION_UNKNOWN])
		kx_print(stderr,
			 "kxray: of %s more call%s it is unknown: memory could not be read, or the call left by a jump; %s recorded\n",
			 kx_decimal_grouped(some, n[KX_CONDITION_UNKNOWN]), plural(n[KX_CONDITION_UNKNOWN]),
			 n[KX_CONDITION_UNKNOWN] == 1 ? "it is" : "they are");
	if (n[KX_CONDITION_UNDECIDED])
		kx_print(stderr, "kxray: %s call%s had no result: not ended, or without an exit of its own (longjmp, exception)\n",
			 kx_decimal_grouped(some, n[KX_CONDITION_UNDECIDED]), plural(n[KX_CONDITION_UNDECIDED]));
}

static void print_clock(const struct kx_recording_result *r)
{
	kx_print(stderr, "kxray: clock %s, %.6f GHz (%s)", r->clock, (double)r->tsc_hz * 1e-9,
		 r->hz_origin);
	if (r->clock_error_ns)
		kx_print(stderr, ", off by at most %llu ns", (unsigned long long)r->clock_error_ns);
	kx_print(stderr, "; detached in %.0f ms\n", r->detach_seconds * 1e3);
	if (r->clock_source[0])
		kx_print(stderr,
			 "kxray: the kernel's clock source is %s, not tsc: reading it takes longer and "
			 "is less exact\n",
			 r->clock_source);
	if (r->clock_error_ns > CLOCK_ERROR_WARN_NS)
		kx_print(stderr,
			 "kxray: warning: times are off by up to %.1f us: the clock's rate changed, or "
			 "kxray did not get a CPU in time\n",
			 (double)r->clock_error_ns * 1e-3);
}

static void print_budget(const struct kx_recording_result *r)
{
	if (r->cpu_percent >= MUCH_CPU)
		kx_print(stderr, "kxray: the probes took about %.0f %% of a CPU of the program's time (%s)\n", r->cpu_percent,
			 r->in_process.functions ? "fewer functions, -f, cost less" : "--max-overhead bounds it");
	if (r->budget_all_in_seconds > 0)
		kx_print(stderr, "kxray: --max-overhead %g %%: the functions' probes went in group by group, the last after "
				 "%.1f s; earlier calls of theirs are not recorded\n",
			 r->budget_percent, r->budget_all_in_seconds);
	if (r->budget_waiting)
		kx_print(stderr, "kxray: the probes of %zu function%s never went in: the others took what the budget "
				 "allows, or the program ran too little to show what they take\n",
			 r->budget_waiting, plural(r->budget_waiting));
	if (!(r->budget_percent > 0) || !r->budget_limited)
		return;
	kx_print(stderr,
		 "kxray: --max-overhead %g %%: the probes took about %.1f %% of the CPU time that the program used; "
		 "%zu function%s sampled",
		 r->budget_percent, r->budget_taken_percent, r->budget_limited,
		 r->budget_limited == 1 ? " was" : "s were");
	if (r->budget_out)
		kx_print(stderr, ", %zu of them had no probes for a time", r->budget_out);
	kx_print(stderr, " ('kxray report' shows which)\n");
}

static void print_in_process(const struct kx_in_process_counts *c)
{
	char functions[KX_GROUPED_SIZE], jumps[KX_GROUPED_SIZE], others[KX_GROUPED_SIZE];

	if (!c->functions && !c->refused) {
		kx_print(stderr, "kxray: in process: nothing, as no function of the program or its libraries was selected\n");
		return;
	}
	kx_print(stderr, "kxray: in process: %s function%s (%s jump%s), %s by uprobes; threads were stopped for %.1f ms at most\n",
		 kx_decimal_grouped(functions, c->functions), plural(c->functions), kx_decimal_grouped(jumps, c->sites), plural(c->sites),
		 kx_decimal_grouped(others, c->refused), c->stopped_ms);
}

static void print_unmatched(const struct kx_recording_result *r)
{
	for (size_t i = 0; i < r->nunmatched && i < KX_UNMATCHED_SHOWN; i++)
		kx_print(stderr, "kxray: -f '%s' matched no function in all that time\n", r->unmatched[i]);
	if (r->nunmatched > KX_UNMATCHED_SHOWN)
		kx_print(stderr, "kxray: nor did %zu more patterns\n", r->nunmatched - KX_UNMATCHED_SHOWN);
}

static void print_unknown_values(const struct kx_unknown_values *u)
{
	for (size_t i = 0; i < u->n && i < KX_UNKNOWN_SHOWN; i++)
		kx_print(stderr, "kxray: %s of %s is not recorded: %s\n", u->shown[i].label, u->shown[i].function,
			 u->shown[i].why);
	if (u->n > KX_UNKNOWN_SHOWN)
		kx_print(stderr, "kxray: nor %s %zu more values; the map says why ('kxray dump --json')\n",
			 u->n == KX_UNKNOWN_SHOWN + 1 ? "is" : "are", u->n - KX_UNKNOWN_SHOWN);
}

void kx_record_summary_print(const struct kx_recording_options *o,
			     const struct kx_recording_result *r)
{
	const struct kx_collector_counts *c = &r->counts;

	if (o->flight)
		print_dumps(r);
	else if (r->files)
		print_parts(r);
	else
		kx_print(stderr,
			 "kxray: %llu event%s, %llu lost, %zu function%s, %llu thread%s, %llu "
			 "bytes in %s, %.3f s\n",
			 (unsigned long long)c->events, plural(c->events),
			 (unsigned long long)c->lost, r->functions, plural(r->functions),
			 (unsigned long long)c->threads, plural(c->threads),
			 (unsigned long long)r->bytes, o->output, r->seconds);
	if (o->follow && !o->all)
		kx_print(stderr, "kxray: %zu process%s traced\n", r->processes,
			 r->processes == 1 ? "" : "es");
	if (r->joined)
		kx_print(stderr,
			"kxray: %zu process%s joined; in libraries that others use too %s untraced for "
			"%.1f ms at most, %.1f ms in all\n",
			r->joined, r->joined == 1 ? "" : "es", r->joined == 1 ? "it was" : "they were",
			(double)r->untraced_max_ns * 1e-6, (double)r->untraced_ns * 1e-6);
	if (r->unfollowed)
		kx_print(stderr, "kxray: %llu process%s not traced: too many at a time to follow\n",
			 (unsigned long long)r->unfollowed,
			 r->unfollowed == 1 ? " was" : "es were");
	if (o->in_process)
		print_in_process(&r->in_process);
	print_unmatched(r);
	print_unknown_values(&r->unknown_values);
	if (o->nrules)
		print_conditions(c->conditions);
	if (!c->events && !c->lost && r->functions && !c->conditions[KX_CONDITION_REJECTED])
		kx_print(stderr, "kxray: none of the traced functions was called or returned\n");
	if (!c->events && r->loads)
		kx_print(stderr, "kxray: a library was loaded meanwhile: %s\n",
			 o->follow || o->all ?
				 "functions of such libraries are traced some ms after that, earlier calls "
				 "are not recorded" :
				 "without --follow, functions of such libraries are not traced");
	print_clock(r);
	if (r->unprobed)
		kx_print(stderr, "kxray: %zu function%s had no probe in the code of a traced process\n",
			 r->unprobed, plural(r->unprobed));
	print_budget(r);
	print_losses(c);
	print_incomplete(o, r, c);
}

/* The patterns' texts; those beyond KX_UNMATCHED_SHOWN are missing. */
static json_t *unmatched_of(const struct kx_recording_result *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->nunmatched && i < KX_UNMATCHED_SHOWN; i++)
		json_array_append_new(list, kx_json_text(r->unmatched[i], 4096));
	return list;
}

/* The first values; those beyond KX_UNKNOWN_SHOWN are missing. */
static json_t *unknown_values_of(const struct kx_unknown_values *u)
{
	json_t *list = json_array();

	for (size_t i = 0; i < u->n && i < KX_UNKNOWN_SHOWN; i++)
		json_array_append_new(list, json_pack("{s:o,s:o,s:o}", "function", kx_json_text(u->shown[i].function, SIZE_MAX),
						      "value", kx_json_text(u->shown[i].label, SIZE_MAX), "why",
						      kx_json_text(u->shown[i].why, SIZE_MAX)));
	return list;
}

static void add_flight(json_t *j, const struct kx_flight_options *o, const struct kx_flight_result *f)
{
	json_object_update_new(
		j, json_pack("{s:i,s:i,s:i,s:I,s:I,s:o}", "dumps", (int)f->dumps,
			     "dumps_kept", (int)f->kept, "dumps_failed",
			     (int)f->failed, "triggers_merged",
			     (json_int_t)f->merged, "store_bytes",
			     (json_int_t)f->memory, "newest_dump",
			     kx_json_text(f->last, sizeof(f->last))));
	if (o->on_dump)
		json_object_set_new(j, "on_dump",
				    json_pack("{s:i,s:i,s:i,s:i}", "ran", (int)f->hooks.ran, "failed",
				      (int)f->hooks.failed, "killed",
				      (int)f->hooks.killed, "skipped",
				      (int)f->hooks.skipped));
}

int kx_record_summary_print_json(const struct kx_recording_options *o,
				 const struct kx_recording_result *r, FILE *to)
{
	const struct kx_collector_counts *c = &r->counts;
	json_t *j = json_pack(
		"{s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:f,s:o,s:I,s:s,s:I,s:s,s:I,s:I,s:I,s:I,s:I,s:f,"
		"s:f,s:I,s:I,s:I,s:I,s:I}",
		"schema", KX_JSON_SCHEMA, "events", (json_int_t)c->events, "lost",
		(json_int_t)c->lost, "reduced", (json_int_t)c->reduced, "functions",
		(json_int_t)r->functions, "threads", (json_int_t)c->threads, "bytes",
		(json_int_t)r->bytes, "clock", r->clock, "seconds", r->seconds, "output",
		kx_json_text(o->output, SIZE_MAX), "tsc_hz", (json_int_t)r->tsc_hz, "hz_origin", r->hz_origin, "clock_error_ns",
		(json_int_t)r->clock_error_ns, "mechanism", r->mechanism, "entries",
		(json_int_t)c->entries, "exits", (json_int_t)c->exits, "repaired",
		(json_int_t)c->repaired, "orphans", (json_int_t)c->orphans, "migrations",
		(json_int_t)c->migrations, "attach_seconds", r->attach_seconds, "detach_seconds",
		r->detach_seconds, "processes", (json_int_t)r->processes, "unfollowed",
		(json_int_t)r->unfollowed, "joined", (json_int_t)r->joined, "untraced_max_ns",
		(json_int_t)r->untraced_max_ns, "untraced_ns", (json_int_t)r->untraced_ns);
	int failed;

	if (o->nrules && j)
		json_object_set_new(j, "conditions", kx_condition_counts_json(c->conditions));
	if (o->in_process && j)
		json_object_set_new(j, "in_process",
				    json_pack("{s:I,s:I,s:I,s:f}", "functions", (json_int_t)r->in_process.functions, "jumps",
					      (json_int_t)r->in_process.sites, "by_uprobes", (json_int_t)r->in_process.refused,
					      "stopped_ms", r->in_process.stopped_ms));
	if (r->return_gaps.threads && j)
		json_object_set_new(j, "return_gaps", json_pack("{s:i,s:f}", "threads", (int)r->return_gaps.threads, "ms",
								(double)r->return_gaps.ns * 1e-6));
	if (r->nunmatched && j)
		json_object_set_new(j, "unmatched", unmatched_of(r));
	if (r->unknown_values.n && j)
		json_object_set_new(j, "unknown_values", unknown_values_of(&r->unknown_values));
	if (r->kept[0] && j)
		json_object_set_new(j, "old_trace", kx_json_text(r->kept, sizeof(r->kept)));
	if (r->unprobed && j)
		json_object_set_new(j, "unprobed", json_integer((json_int_t)r->unprobed));
	if (r->kernel_mechanism && j)
		json_object_set_new(j, "kernel_mechanism", json_string(r->kernel_mechanism));
	if (j && r->cpu_percent > 0)
		json_object_set_new(j, "cpu_percent", json_real(r->cpu_percent));
	if (j && r->budget_percent > 0)
		json_object_update_new(
			j, json_pack("{s:f,s:f,s:I,s:I,s:f,s:I}", "budget_percent", r->budget_percent,
				     "budget_taken_percent", r->budget_taken_percent, "sampled",
				     (json_int_t)r->budget_limited, "taken_out",
				     (json_int_t)r->budget_out, "all_in_seconds", r->budget_all_in_seconds,
				     "never_in", (json_int_t)r->budget_waiting));
	if (j && r->files)
		json_object_update_new(j, json_pack("{s:i,s:i,s:o}", "files", (int)r->files,
						    "files_kept", (int)r->files_kept,
						    "newest_file",
						    kx_json_text(r->newest, sizeof(r->newest))));
	if (j && o->flight)
		add_flight(j, o->flight, &r->flight);
	failed = !j || json_dumpf(j, to, JSON_COMPACT) || fputc('\n', to) == EOF || fflush(to);

	json_decref(j);
	return failed;
}
