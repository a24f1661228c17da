// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/record_arguments.h"
#include "cmd/record_options.h"

const struct kx_command kx_command_record = {
	.name = "record",
	.summary = "trace a running program, or start one, and write a trace",
	.usage = "Usage: kxray record (-p PID[,PID...] | -a | -- COMMAND [ARG...]) [OPTION]...\n"
		 "Records function entries, exits and CPU migrations of a running, unmodified program,\n"
		 "or of COMMAND from its first instruction on.\n",
	.groups = kx_record_options,
	.notes = "Exit status: 0 done, 1 failed, 2 wrong usage, 3 lost events with --fail-on-loss;\n"
		 "with -- COMMAND the command's own (128 + N if signal N ended it).\n",
	.operands = KX_OPERANDS_COMMAND,
	.operand = offsetof(struct kx_record_arguments, o.command),
	.run = kx_cmd_record,
};

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
	struct kx_record_arguments *a = ctx;
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
		"kxray: %s %zu function%s with %zu probe%s (%s, attached in %.0f ms); ends %s\n",
		a->o.count ? "counting calls of" : "recording", nfunctions, plural(nfunctions), nprobes,
		plural(nprobes), mechanism,
		attach_seconds * 1e3,
		a->o.all ? "at Ctrl-C" :
		a->o.command && a->o.follow ? "with the command and what it started" :
		a->o.command ? "with the command" :
		a->o.npids > 1 ? "at Ctrl-C or with the processes" :
				 "at Ctrl-C or with the process");
}

static void on_notice(void *ctx, const char *text)
{
	struct kx_record_arguments *a = ctx;

	if (!a->quiet)
		fprintf(stderr, "kxray: %s\n", text);
}

static void print_dumps(const struct kx_recording_result *r)
{
	const struct kx_flight_result *f = &r->flight;

	fprintf(stderr,
		"kxray: %u dump%s%s%s, %llu bytes; %llu event%s seen, %llu lost, %zu function%s, %.3f s\n",
		f->dumps, plural(f->dumps), f->dumps ? ", the newest is " : "", f->last,
		(unsigned long long)r->bytes, (unsigned long long)r->counts.events,
		plural(r->counts.events), (unsigned long long)r->counts.lost, r->functions,
		plural(r->functions), r->seconds);
	if (f->kept < f->dumps)
		fprintf(stderr, "kxray: %u older dump%s removed (--dumps)\n", f->dumps - f->kept,
			f->dumps - f->kept == 1 ? " was" : "s were");
	if (f->merged)
		fprintf(stderr, "kxray: %llu trigger%s had no dump of %s own: %s came while another was "
				"due or being written, or too soon after it\n",
			(unsigned long long)f->merged, plural(f->merged),
			f->merged == 1 ? "its" : "their", f->merged == 1 ? "it" : "they");
	if (f->failed)
		fprintf(stderr, "kxray: %u dump%s could not be written\n", f->failed,
			plural(f->failed));
}

static void on_counts(void *ctx, const struct kx_selection *sel, const uint64_t *calls)
{
	struct kx_record_arguments *a = ctx;

	a->count_failed = kx_counts_take(&a->counts, sel, calls, &a->count_error);
}

/* What --count found; the run itself ended with @code. */
static int show_counts(struct kx_record_arguments *a, const struct kx_recording_result *r, int code,
		       struct kx_err *err)
{
	if (code)
		return code;
	if (a->count_failed) {
		*err = a->count_error;
		return a->count_failed;
	}
	if (!a->counts.calls && !a->quiet)
		fprintf(stderr, "kxray: none of the traced functions was called\n");
	if ((a->counts.calls || a->json) && kx_counts_print(&a->counts, r->seconds, a->json, stdout))
		return kx_err_set(err, -EIO, "the counts cannot be printed on stdout");
	return 0;
}

/* What --by-heat chose, and why. */
static void print_heat(const struct kx_record_arguments *a)
{
	const struct kx_call_rates *h = &a->heat;

	fprintf(stderr,
		"kxray: by heat in %.1f s: %zu function%s (%zu of them called), predicted to take %.2f %% "
		"of one CPU%s\n",
		h->seconds, h->nkept, plural(h->nkept), h->ncalled, h->percent,
		h->cheap_only ? "; those with a dear entry were not looked at (name them with -f)" : "");
	for (size_t i = 0; i < h->nhot && i < 5; i++)
		fprintf(stderr, "kxray: too hot: %s: %.0f calls a second, %.1f %% of one CPU\n",
			h->hot[i].name, h->hot[i].per_second, h->hot[i].percent);
	if (h->nhot > 5)
		fprintf(stderr, "kxray: too hot: %zu more\n", h->nhot - 5);
}

static int choose_by_heat(struct kx_record_arguments *a, struct kx_err *err)
{
	int code;

	if (!a->quiet)
		fprintf(stderr, "kxray: counting calls for %g s\n", a->heat_seconds);
	code = kx_call_rates_select(a->o.pids, a->o.npids, &a->o.select, a->heat_seconds, a->max_overhead,
			    &a->heat, err);
	if (code)
		return code;
	a->o.select = a->heat.select;
	if (!a->quiet)
		print_heat(a);
	return 0;
}

static void print_summary(const struct kx_record_arguments *a, const struct kx_recording_result *r)
{
	static const char *const why[KX_LOSS_REASONS] = {
		"ring buffer full: try a larger --ring-size or fewer functions",
		"too many writers at once", "CPU without a ring", "clock unreadable"
	};
	const struct kx_collector_counts *c = &r->counts;

	if (a->o.flight)
		print_dumps(r);
	else
		fprintf(stderr,
			"kxray: %llu event%s, %llu lost, %zu function%s, %llu thread%s, %llu bytes in %s, %.3f s\n",
			(unsigned long long)c->events, plural(c->events), (unsigned long long)c->lost,
			r->functions, plural(r->functions), (unsigned long long)c->threads,
			plural(c->threads), (unsigned long long)r->bytes, a->o.output, r->seconds);
	if (a->o.follow && !a->o.all)
		fprintf(stderr, "kxray: %zu process%s traced\n", r->processes,
			r->processes == 1 ? "" : "es");
	if (r->unfollowed)
		fprintf(stderr,
			"kxray: %llu processes were not traced: too many at a time to follow\n",
			(unsigned long long)r->unfollowed);
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
	if (c->lost_missed)
		fprintf(stderr, "kxray: %llu lost: calls inside the kernel that it did not pass on (the "
				"CPU was in another probe, or too many threads in one function), "
				"perhaps of other processes\n",
			(unsigned long long)c->lost_missed);
	if (c->lost_migrations)
		fprintf(stderr, "kxray: %llu CPU changes or thread records lost\n",
			(unsigned long long)c->lost_migrations);
	if (c->repaired)
		fprintf(stderr, "kxray: %llu call%s closed without an exit of their own (longjmp, "
				"exception, nesting limit, thread end)\n",
			(unsigned long long)c->repaired, plural(c->repaired));
	if (c->reduced)
		fprintf(stderr, "kxray: %llu event%s left out by %s\n",
			(unsigned long long)c->reduced, plural(c->reduced),
			!a->o.max_depth ? "--min-duration" :
			a->o.min_duration_ns ? "--min-duration and --depth" : "--depth");
	if (c->too_deep)
		fprintf(stderr, "kxray: %llu of them were nested deeper than kxray follows a thread\n",
			(unsigned long long)c->too_deep);
	if (c->orphans)
		fprintf(stderr, "kxray: %llu exit%s left out, of calls that began before the recording\n",
			(unsigned long long)c->orphans, plural(c->orphans));
}

static int print_json(const struct kx_record_arguments *a, const struct kx_recording_result *r)
{
	const struct kx_collector_counts *c = &r->counts;
	json_t *j = json_pack(
		"{s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:f,s:s,s:I,s:s,s:I,s:s,s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:I,s:I}",
		"events", (json_int_t)c->events, "lost", (json_int_t)c->lost, "reduced",
		(json_int_t)c->reduced, "functions",
		(json_int_t)r->functions, "threads", (json_int_t)c->threads, "bytes",
		(json_int_t)r->bytes, "clock", r->clock, "seconds", r->seconds, "output",
		a->o.output, "tsc_hz", (json_int_t)r->tsc_hz, "hz_origin", r->hz_origin,
		"clock_error_ns", (json_int_t)r->clock_error_ns, "mechanism", r->mechanism,
		"entries", (json_int_t)c->entries, "exits", (json_int_t)c->exits, "repaired",
		(json_int_t)c->repaired, "orphans", (json_int_t)c->orphans, "migrations",
		(json_int_t)c->migrations, "attach_seconds", r->attach_seconds, "detach_seconds",
		r->detach_seconds, "processes", (json_int_t)r->processes, "unfollowed",
		(json_int_t)r->unfollowed);
	int failed;

	if (r->kernel_mechanism && j)
		json_object_set_new(j, "kernel_mechanism", json_string(r->kernel_mechanism));
	if (j && a->o.flight)
		json_object_update_new(
			j, json_pack("{s:i,s:i,s:i,s:I,s:I,s:s}", "dumps", (int)r->flight.dumps,
				     "dumps_kept", (int)r->flight.kept, "dumps_failed",
				     (int)r->flight.failed, "triggers_merged",
				     (json_int_t)r->flight.merged, "store_bytes",
				     (json_int_t)r->flight.memory, "newest_dump", r->flight.last));
	failed = !j || json_dumpf(j, stdout, JSON_COMPACT) || putchar('\n') == EOF ||
		     fflush(stdout);

	json_decref(j);
	return failed;
}

int kx_cmd_record(int argc, char **argv)
{
	struct kx_record_arguments a = { .o = { .mechanism = -1, .argc = argc, .argv = argv } };
	struct kx_recording_result result;
	struct kx_err err = { 0 };
	int status = KX_EXIT_DONE, code = kx_record_parse(&kx_command_record, &a, argc, argv, &err);

	if (code) {
		status = kx_cmd_end_parse(&kx_command_record, code, &err);
		goto out;
	}
	a.o.on_start = on_start;
	a.o.on_notice = on_notice;
	a.o.on_counts = on_counts;
	a.o.ctx = &a;
	memset(&result, 0, sizeof(result));
	code = a.heat_seconds > 0 ? choose_by_heat(&a, &err) : 0;
	if (!code)
		code = kx_recording_run(&a.o, &result, &err);
	if (result.started && a.o.count) {
		code = show_counts(&a, &result, code, &err);
	} else if (result.started) {
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
	kx_record_arguments_free(&kx_command_record, &a);
	return status;
}
