// SPDX-License-Identifier: BSD-2-Clause
/*
 * kxray top: a recording (record/recording.h) of which nothing is written. Each pass takes part in
 * its loop; at the end of an interval the kernel side's statistics become rows (live/call_rows.h),
 * which are shown.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/process_name.h"
#include "base/screen.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/record_choice.h"
#include "cmd/record_options.h"
#include "cmd/top_arguments.h"
#include "cmd/top_metrics.h"
#include "live/call_json.h"
#include "live/call_lines.h"
#include "live/live_screen.h"

static const struct kx_example examples[] = {
	{ "sudo kxray top -p 1234",
	  "functions of the main executable, chosen so that it costs little" },
	{ "sudo kxray top -p 1234 -f 'handle_*' -f 'libc.so*:malloc'", "these functions" },
	{ "sudo kxray top -a -f 'libssl.so*:SSL_*'", "in every process" },
	{ "sudo kxray top -p 1234 -f 'handle_*' -n 1 -i 2s --json", "two seconds, for a script" },
	{ "sudo kxray top -p 1234 -f 'handle_*' -q --prometheus 9100",
	  "for Prometheus, at http://127.0.0.1:9100/metrics" },
	{ 0 },
};

const struct kx_command kx_command_top = {
	.name = "top",
	.summary = "watch the calls of a running program, live; nothing is written",
	.usage = "Usage: kxray top (-p PID[,PID...] | -a) [OPTION]...\n"
		 "Shows how often functions of running programs are called and how long that "
		 "takes, live.\n"
		 "Calls are counted and timed in the kernel; nothing is written.\n",
	.groups = kx_top_options,
	.notes = "SHARE is the time spent in a function's calls, callees and waiting included, in "
		 "percent of\n"
		 "one CPU. P50 and P99 are interpolated between powers of two: right within a "
		 "factor of 2.\n"
		 "Without a terminal it prints a table each interval.\n",
	.examples = examples,
	.run = kx_cmd_top,
};

#define SHORT_REST 0.05 /* of an interval */
#define LEFT_ROWS  20	/* of the table that stays when the screen is closed */

struct top {
	struct kx_top_arguments *a;
	struct kx_call_rows rows;
	struct kx_call_view view;
	double then, cpu_then; /* of the last interval's end */
	uint64_t interval;     /* number of the present one, from 1 on */
	bool begun;
	uint64_t missed;
	char what[64];
	struct kx_live_screen *screen; /* NULL: tables or JSON are printed */
	bool wants_screen, quit;
	struct kx_top_metrics metrics;
	int epoll_fd; /* of the keyboard and the metrics' server */
	int failed;   /* the screen or the server could not be opened: the error */
	struct kx_err why;
	char notice[512]; /* the last one on the screen, printed when it is closed */
	struct kx_text_out out;
};

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* A message: printed, or shown on the screen. */
static void say(struct top *t, const char *text)
{
	if (t->a->r.quiet)
		return;
	if (t->screen)
		kx_live_screen_say(t->screen, text);
	else
		kx_print(stderr, "kxray: %s\n", text);
}

static int watch_fd(struct top *t, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (fd < 0 || !epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return 0;
	return kx_err_set(&t->why, -errno, "descriptors cannot be watched: %s", strerror(errno));
}

/* The ways to look on. Only now: the keeper, which has begun as a copy of this process, has none of
 * their descriptors. */
static int open_ways(struct top *t)
{
	char text[100];
	int code = kx_top_metrics_open(&t->metrics, t->a->prometheus, &t->rows, &t->why);

	if (!code && t->wants_screen)
		code = kx_live_screen_open(&t->view, t->what, t->a->screen.color, &t->screen,
					   &t->why);
	if (!code && t->screen)
		code = watch_fd(t, STDIN_FILENO);
	if (!code)
		code = watch_fd(t, kx_top_metrics_fd(&t->metrics));
	if (!code && t->metrics.server) {
		snprintf(text, sizeof(text), "metrics at http://127.0.0.1:%u/metrics",
			 t->metrics.port);
		say(t, text);
	}
	return code;
}

static void on_start(void *ctx, const struct kx_selection *sel, size_t nfunctions, size_t nprobes,
		     const char *mechanism, double attach_seconds, const struct kx_price *price)
{
	struct top *t = ctx;
	char text[300];

	(void)price;
	t->failed = open_ways(t);
	if (t->a->r.quiet)
		return;
	for (size_t i = 0; i < sel->nnotes; i++)
		say(t, sel->notes[i]);
	if (sel->nleft_out) {
		snprintf(text, sizeof(text),
			 "left out %zu function%s (kxray functions --left-out shows why)",
			 sel->nleft_out, plural(sel->nleft_out));
		say(t, text);
	}
	snprintf(text, sizeof(text),
		 "watching %zu function%s with %zu probe%s (%s, attached in %.0f ms)", nfunctions,
		 plural(nfunctions), nprobes, plural(nprobes), mechanism, attach_seconds * 1e3);
	say(t, text);
}

static void on_notice(void *ctx, const char *text)
{
	struct top *t = ctx;

	snprintf(t->notice, sizeof(t->notice), "%s", t->screen ? text : "");
	say(t, text);
}

/* Functions may have joined. */
static int add_functions(struct top *t, const struct kx_selection *sel)
{
	int code = 0;

	while (!code && t->rows.n < sel->nfunctions) {
		const struct kx_function *f = &sel->functions[t->rows.n];

		code = kx_call_rows_add(&t->rows, f->sym->pretty,
					sel->modules[f->module].module->name);
		t->rows.traced += !code && f->traced;
	}
	return code;
}

static void update(struct top *t, const struct kx_live_view *v)
{
	for (size_t i = 0; i < t->rows.n; i++) {
		struct kx_call_stats now;

		v->stats(v, i, &now);
		kx_call_row_update(&t->rows.items[i], &now);
	}
	t->rows.seconds = v->seconds - t->then;
	t->rows.total_seconds = v->seconds;
	t->rows.cpu = v->target_cpu - t->cpu_then;
	t->rows.total_cpu = v->target_cpu;
	t->then = v->seconds;
	t->cpu_then = v->target_cpu;
	t->missed = v->missed;
}

static double real_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void put_table(struct top *t)
{
	struct kx_screen screen =
		kx_screen_of(STDOUT_FILENO, t->a->screen.color, t->a->screen.wide);

	if (t->interval > 1)
		kx_text_char(&t->out, '\n');
	kx_put_call_summary(&t->out, &screen, t->what, &t->rows, &t->view);
	kx_text_char(&t->out, '\n');
	if (kx_put_call_table(&t->out, &screen, &t->rows, &t->view, t->a->limit))
		t->out.error = -ENOMEM;
}

/* What is left of the time after whole intervals: nothing happened in it. */
static bool is_rest(const struct top *t)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < t->rows.n; i++)
		calls += t->rows.items[i].last.calls + kx_call_timed(&t->rows.items[i].last);
	return t->interval > 1 && !calls && t->rows.seconds < t->a->interval * SHORT_REST;
}

/* Standard output's reader may go away: that ends it in order. */
static int show(struct top *t, bool last, struct kx_err *err)
{
	const struct kx_call_json j = {
		.interval = t->interval,
		.time = real_time(),
		.missed = t->missed,
		.last = last,
	};
	int code;

	if (t->screen)
		return kx_live_screen_show(t->screen, &t->rows)
			       ? kx_err_set(err, -ENOMEM, "no memory for the screen")
			       : 0;
	if (t->a->r.json && kx_put_call_json(&t->out, &j, &t->rows, &t->view, t->a->limit))
		t->out.error = -ENOMEM;
	else if (!t->a->r.json && !t->a->r.quiet && !(last && is_rest(t)))
		put_table(t);
	code = kx_text_flush(&t->out);
	if (code == -EPIPE)
		return -ECANCELED;
	return code ? kx_err_set(err, code, "standard output cannot be written: %s",
				 strerror(-code))
		    : 0;
}

static int pass(void *ctx, const struct kx_live_view *v, struct kx_err *err)
{
	struct top *t = ctx;
	double left;
	int code, wait_ms;

	if (t->failed) {
		*err = t->why;
		return t->failed;
	}
	if (add_functions(t, v->sel))
		return kx_err_set(err, -ENOMEM, "no memory for the functions");
	left = t->then + t->a->interval - v->seconds;
	if (left <= 0 || v->last) {
		/* the last one is shown when the probes are out: then nothing is missing */
		if (t->a->count && t->interval == t->a->count && !v->last)
			return -ECANCELED;
		update(t, v);
		code = kx_top_metrics_write(&t->metrics, err);
		if (!code)
			code = show(t, v->last, err);
		if (code)
			return code;
		t->interval++;
		left = t->a->interval;
	}
	if (t->screen && !v->last) {
		code = kx_live_screen_poll(t->screen);
		t->quit = code == -ECANCELED;
		if (code)
			return code;
	}
	wait_ms = kx_top_metrics_poll(&t->metrics);
	return left * 1e3 < wait_ms ? (int)(left * 1e3) + 1 : wait_ms;
}

static void name_targets(struct top *t)
{
	const struct kx_recording_options *o = &t->a->r.o;
	char comm[KX_PROCESS_NAME];

	if (o->all) {
		snprintf(t->what, sizeof(t->what), "all processes");
		return;
	}
	if (o->npids > 1) {
		snprintf(t->what, sizeof(t->what), "%zu processes", o->npids);
		return;
	}
	kx_process_name(o->pids[0], "", comm, sizeof(comm));
	snprintf(t->what, sizeof(t->what), "process %d (%s)", (int)o->pids[0], comm);
}

static void print_end(const struct top *t, const struct kx_recording_result *r)
{
	uint64_t calls = 0, timed = 0;

	for (size_t i = 0; i < t->rows.n; i++) {
		calls += t->rows.items[i].total.calls;
		timed += kx_call_timed(&t->rows.items[i].total);
	}
	for (size_t i = 0; i < r->nunmatched && i < KX_UNMATCHED_SHOWN; i++)
		kx_print(stderr, "kxray: -f '%s' matched no function in all that time\n",
			 r->unmatched[i]);
	kx_print(stderr,
		 "kxray: %" PRIu64 " call%s of %zu function%s in %.3f s, %" PRIu64
		 " without a measured end\n",
		 calls, plural(calls), t->rows.traced, plural(t->rows.traced), r->seconds,
		 calls > timed ? calls - timed : 0);
	if (t->missed)
		kx_print(stderr,
			 "kxray: %" PRIu64 " hits were not reported by the kernel (the CPU was in "
			 "another probe, or too many "
			 "threads were in one function); some may belong to other processes\n",
			 t->missed);
}

/* What was seen stays on the terminal, unless the user has seen enough. */
static void close_screen(struct top *t)
{
	if (!t->screen)
		return;
	kx_live_screen_close(t->screen);
	t->screen = NULL;
	if (t->notice[0])
		kx_print(stderr, "kxray: %s\n", t->notice);
	if (t->quit)
		return;
	t->view.total = true;
	t->interval = 1;
	if (!t->a->limit)
		t->a->limit = LEFT_ROWS;
	put_table(t);
	kx_text_flush(&t->out);
}

static int watch(struct top *t, struct kx_err *err)
{
	struct kx_recording_options *o = &t->a->r.o;
	const struct kx_live_ops ops = { .fd = t->epoll_fd, .pass = pass, .ctx = t };
	struct kx_recording_result result = { 0 };
	int code = t->epoll_fd < 0
			   ? kx_err_set(err, -errno, "no descriptors are left: %s", strerror(errno))
			   : kx_top_metrics_try(t->a->prometheus, err);

	if (!code)
		code = kx_record_choose(&t->a->r, err);
	if (code)
		return code;
	o->on_start = on_start;
	o->on_notice = on_notice;
	o->count = true;
	o->live = &ops;
	o->ctx = t;
	name_targets(t);
	code = kx_recording_run(o, &result, err);
	close_screen(t);
	kx_top_metrics_close(&t->metrics);
	if (result.started && !t->a->r.quiet)
		print_end(t, &result);
	return code;
}

int kx_cmd_top(int argc, char **argv)
{
	struct kx_top_arguments a = {
		.r = { .o = { .mechanism = -1, .argc = argc, .argv = argv } }
	};
	struct top *t = calloc(1, sizeof(*t));
	struct kx_err err = { 0 };
	int status = KX_EXIT_DONE, code = kx_top_parse(&kx_command_top, &a, argc, argv, &err);

	if (code) {
		status = kx_cmd_end_parse(&kx_command_top, code, &err);
	} else if (t) {
		t->a = &a;
		t->view.sort = a.sort;
		t->interval = 1;
		t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		t->wants_screen = !a.batch && !a.r.json && !a.r.quiet && isatty(STDIN_FILENO) &&
				  isatty(STDOUT_FILENO);
		kx_text_init(&t->out, STDOUT_FILENO);
		if (watch(t, &err))
			status = kx_cmd_fail("top", &err);
		kx_call_rows_free(&t->rows);
		if (t->epoll_fd >= 0)
			close(t->epoll_fd);
	} else {
		kx_err_set(&err, -ENOMEM, "no memory");
		status = kx_cmd_fail("top", &err);
	}
	free(t);
	kx_top_arguments_free(&kx_command_top, &a);
	return status;
}
