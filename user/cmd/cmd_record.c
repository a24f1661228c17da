// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/screen.h"
#include "binary/debuginfod.h"
#include "binary/program_path.h"
#include "binary/script.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/record_after.h"
#include "cmd/record_arguments.h"
#include "cmd/record_choice.h"
#include "cmd/record_options.h"
#include "cmd/record_summary.h"
#include "record/command_end.h"

static const struct kx_example examples[] = {
	{ "sudo kxray record -p 1234 -f 'handle_*' -f 'libc.so*:malloc' -d 5",
	  "five seconds of a running process, into trace.xray" },
	{ "sudo kxray record -f '*' -o run.xray -- ./program argument",
	  "a program from its entry point to its end" },
	{ "sudo kxray record -p 1234 -f 'handle_*' -f 'syscall:*' --args 3",
	  "with the system calls, their arguments and results" },
	{ "sudo kxray record -a -f 'libssl.so*:SSL_*' -d 10",
	  "every process that uses a library" },
	{ "sudo kxray record -p 1234 -f '*' --flight-recorder 16M --trigger 'handle_*>50ms'",
	  "the history of each call that takes longer than 50 ms" },
	{ "sudo kxray record -p 1234 -f '*' --keep 10 --trigger 'handle_request@entry' --dump-interval 10 --on-dump 'gzip -k {}'",
	  "the last ten seconds every ten seconds, and a command for each dump" },
	{ "sudo kxray record --in-process -p 1234 -f '*' -d 5",
	  "functions that are called very often, without a trap at each call" },
	{ 0 },
};

const struct kx_command kx_command_record = {
	.name = "record",
	.summary = "trace a running program, or start one, and write a trace",
	.usage = "Usage: kxray record (-p PID[,PID...] | -a | -- COMMAND [ARG...]) [OPTION]...\n"
		 "Records function entries, exits and CPU migrations of a running, unmodified program,\n"
		 "or of COMMAND from its entry point on.\n",
	.groups = kx_record_options,
	.notes = "Exit status: 0 done, 1 failed, 2 wrong usage, 3 lost events with --fail-on-loss;\n"
		 "with -- COMMAND the command's own (128 + N if signal N ended it).\n",
	.examples = examples,
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

	kx_print(stderr,
		 "kxray: no -f given: chose %zu of %zu functions by size (%d instructions or a "
		 "loop): ",
		 sel->ntraced, sel->ncandidates, KX_SELECT_MIN_INSTRUCTIONS);
	for (size_t i = 0; i < sel->nfunctions && shown < 8; i++) {
		if (!sel->functions[i].traced)
			continue;
		kx_print(stderr, "%s%s", shown++ ? ", " : "", sel->functions[i].sym->pretty);
	}
	if (sel->ntraced > shown)
		kx_print(stderr, " and %zu more", sel->ntraced - shown);
	fputc('\n', stderr);
}

/* What calls of some functions cost more than those of others. */
static void print_expensive(const struct kx_record_arguments *a, const struct kx_selection *sel, size_t nfunctions,
			    const struct kx_price *price)
{
	char cost[KX_PRICE_TEXT], instead[KX_PRICE_TEXT];
	size_t stepped = 0;

	for (size_t i = 0; i < sel->nfunctions; i++)
		stepped += sel->functions[i].traced &&
			   sel->functions[i].plan.entry.cost == KX_COST_STEPPED;
	if (stepped)
		kx_print(stderr,
			 "kxray: %zu of %zu functions have an expensive entry (single-stepped); "
			 "'kxray functions' shows which\n",
			 stepped, nfunctions);
	if (price->functions && !a->o.count && a->o.select.exits == KX_EXITS_AUTO) {
		const bool harmless = sel->risk.returns_harmless;

		kx_price_texts(price, cost, instead);
		kx_print(stderr, "kxray: %zu of %zu functions have expensive exits, %s%s%s; %s\n", price->functions,
			 nfunctions, cost, harmless ? "" : ", because ", harmless ? "" : sel->risk.reason, instead);
	}
}

static void on_start(void *ctx, const struct kx_selection *sel, size_t nfunctions, size_t nprobes,
		     const char *mechanism, double attach_seconds, const struct kx_price *price)
{
	struct kx_record_arguments *a = ctx;

	kx_debuginfod_allow(NULL, NULL);
	if (a->quiet)
		return;
	if (sel->by_size)
		print_choice(sel);
	for (size_t i = 0; i < sel->nnotes; i++)
		kx_print(stderr, "kxray: %s\n", sel->notes[i]);
	for (size_t i = 0; i < sel->nleft_out && i < 5; i++)
		kx_print(stderr, "kxray: left out %s: %s\n", sel->left_out[i].sym->pretty,
			 sel->left_out[i].reason);
	if (sel->nleft_out > 5)
		kx_print(stderr,
			 "kxray: left out %zu more (kxray functions --left-out shows all)\n",
			 sel->nleft_out - 5);
	/* in process, that concerns only what keeps its uprobes, which is not known yet */
	if (!a->o.in_process)
		print_expensive(a, sel, nfunctions, price);
	kx_print(stderr,
		 "kxray: %s %zu function%s with %zu probe%s (%s, attached in %.0f ms); ends %s\n",
		 a->o.count ? "counting calls of" : "recording", nfunctions, plural(nfunctions),
		 nprobes, plural(nprobes), mechanism, attach_seconds * 1e3,
		 a->o.all		       ? "at Ctrl-C"
		 : a->o.command && a->o.follow ? "with the command and what it started"
		 : a->o.command		       ? "with the command"
		 : a->o.npids > 1	       ? "at Ctrl-C or with the processes"
					       : "at Ctrl-C or with the process");
}

static void on_status(void *ctx, const struct kx_recording_status *status)
{
	struct kx_record_arguments *a = ctx;

	kx_status_line_show(&a->status, status,
			    a->o.count ? KX_STATUS_COUNT : a->o.flight ? KX_STATUS_FLIGHT : KX_STATUS_TRACE);
}

static void on_notice(void *ctx, const char *text)
{
	struct kx_record_arguments *a = ctx;

	kx_status_line_clear(&a->status);
	if (!a->quiet)
		kx_print(stderr, "kxray: %s\n", text);
}

static void on_counts(void *ctx, const struct kx_selection *sel, const uint64_t *calls,
		      const double *out)
{
	struct kx_record_arguments *a = ctx;

	a->count_failed = kx_counts_take(&a->counts, sel, calls, out, &a->count_error);
}

/* Prints the counts of --count; @code is the result of the run itself. */
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
		kx_print(stderr, "kxray: none of the traced functions was called\n");
	if (r->budget_limited && !a->quiet)
		kx_print(stderr,
			 "kxray: --max-overhead %g %%: the probes took about %.1f %% of the CPU time that the program "
			 "used; calls of %zu function%s were not counted for a time\n",
			 r->budget_percent, r->budget_taken_percent, r->budget_out, plural(r->budget_out));
	if ((a->counts.calls || a->json) && kx_counts_print(&a->counts, r->seconds, a->json, kx_screen_of(STDOUT_FILENO, KX_COLOR_NEVER, false).columns,
			    stdout))
		return kx_err_set(err, -EIO, "the counts cannot be printed on stdout");
	return 0;
}

/* A command that outlives its recording; without a word, kxray would seem to hang. */
static void end_command(const struct kx_record_arguments *a, struct kx_recording_result *r)
{
	if (!r->started || !kx_command_goes_on(r))
		return;
	fflush(stdout);
	if (!a->kill && !a->quiet)
		kx_print(stderr, "kxray: waiting for '%s' (process %d); Ctrl-C ends it, and with --kill kxray does\n",
			 a->o.command[0], (int)kx_command_pid(r));
	kx_command_end(r, a->kill);
}

/* A script has no functions of its own, and the program that runs it is often found by another one, env. */
static int explain_script(const struct kx_record_arguments *a, int code, struct kx_err *err)
{
	const char *name = a->o.command ? a->o.command[0] : NULL;
	bool ran = name && code == -ENOENT && !strstr(err->text, "cannot be run");
	char *path = ran ? kx_program_path(name) : NULL, interpreter[64];
	struct kx_err why = *err;

	if (path && kx_script_interpreter_of(path, interpreter, sizeof(interpreter)) && *interpreter)
		kx_err_set(err, code,
			   "'%.60s' is a script: only C functions of the program that runs it can be traced, as in -- %s %.60s (%.700s)",
			   name, interpreter, path, why.text);
	free(path);
	return code;
}

static int record(struct kx_record_arguments *a, struct kx_recording_result *result, struct kx_err *err)
{
	int code = kx_record_choose(a, err);

	a->status.fd = -1;
	/* a command writes to the terminal, too, and would not erase the line before */
	if (!a->quiet && !a->json && !(a->o.command && isatty(STDOUT_FILENO)))
		kx_status_line_open(&a->status);
	if (a->status.fd >= 0)
		a->o.on_status = on_status;
	if (!code)
		code = kx_recording_run(&a->o, result, err);
	kx_status_line_clear(&a->status);
	kx_status_line_close(&a->status);
	return result->started ? code : explain_script(a, code, err);
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
	kx_debuginfod_allow(on_notice, &a); /* while functions are selected */
	memset(&result, 0, sizeof(result));
	code = record(&a, &result, &err);
	if (result.started && a.o.count) {
		code = show_counts(&a, &result, code, &err);
	} else if (result.started) {
		if (!a.quiet)
			kx_record_summary_print(&a.o, &result);
		if (a.json && kx_record_summary_print_json(&a.o, &result, stdout) && !code)
			code = kx_err_set(&err, -EIO, "the summary cannot be printed on stdout");
		status = kx_record_after(&a, &result);
		if (a.fail_on_loss && result.counts.lost)
			status = KX_EXIT_LOSS;
	}
	if (code)
		status = kx_cmd_fail("record", &err);
	end_command(&a, &result);
	if (!code && result.command_ended && !status && !result.command_asked)
		status = WIFEXITED(result.command_status) ? WEXITSTATUS(result.command_status) :
							    128 + WTERMSIG(result.command_status);
out:
	kx_record_arguments_free(&kx_command_record, &a);
	return status;
}
