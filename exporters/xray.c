// SPDX-License-Identifier: BSD-2-Clause
/*
 * FDR to FDR: any version to any version, written by kxray's own writer, so that llvm-xray accepts
 * it: threads start at the same time, calls balance, buffers are in order. Keeps everything that a
 * visitor gets: calls, CPUs, names, losses, events, samples, times off the CPU. A copy of the map is
 * written beside it. A trace without a call has one note, since llvm-xray rejects a bare header.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/exporter.h"
#include "trace/fdr_writer.h"
#include "base/array.h"
#include "base/json_text.h"
#include "base/output.h"
#include "trace/map_file.h"

#define MAX_EVENT 4096 /* bytes; the writer's limit */

struct repair {
	uint64_t tsc;
	uint32_t func;
};

struct xray {
	const struct kx_export *x;
	struct kx_fdr_writer *writer;
	struct kx_fdr_thread *stream; /* of the thread being walked */
	struct repair *repairs; /* exits that the trace does not have, not yet written */
	size_t nrepairs, room;
	bool session_done;
	uint64_t cut, typed; /* events that were changed */
	struct kx_err *err;
};

/* Writes the exits that were held back until their number was known. */
static int write_repairs(struct xray *w, const struct kx_call_thread *t)
{
	struct kx_note note;
	int r;

	if (!w->nrepairs)
		return 0;
	note = (struct kx_note){ .kind = KX_NOTE_REPAIRED, .repaired.exits = w->nrepairs };
	r = kx_fdr_note(w->stream, w->repairs[0].tsc, &note);
	for (size_t i = 0; i < w->nrepairs && !r; i++)
		r = kx_fdr_exit(w->stream, w->repairs[i].tsc, t->cpu, w->repairs[i].func, false);
	w->nrepairs = 0;
	return r;
}

static int write_session(struct xray *w, uint64_t tsc)
{
	size_t size;
	const char *session = kx_calls_session(w->x->calls, &size);
	const struct kx_note note = { .kind = KX_NOTE_SESSION, .session = { session, size } };

	if (w->session_done || !session || size > KX_NOTE_MAX - 32)
		return 0;
	w->session_done = true;
	return kx_fdr_note(w->stream, tsc, &note);
}

static int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	const struct kx_note note = { .kind = KX_NOTE_THREAD, .thread = {
		.pid = t->pid, .tid = t->tid, .ns_pid = t->ns_pid, .ns_tid = t->ns_tid,
		.name = t->name, .process = t->process,
	} };
	struct xray *w = ctx;
	int r;

	if (w->stream) {
		r = write_repairs(w, t);
		return r ? r : kx_fdr_note(w->stream, tsc, &note);
	}
	w->stream = kx_fdr_writer_thread_of(w->writer, &note.thread);
	return w->stream ? write_session(w, tsc) : -ENOMEM;
}

/* Of the entry or exit that is written next. What is longer than any is damaged. */
static int write_values(struct xray *w, uint64_t tsc, const struct kx_value_payload *p)
{
	const size_t size = p->size < KX_WIRE_MAX_WORDS * 8 ? p->size : KX_WIRE_MAX_WORDS * 8;
	const struct kx_note note = { .kind = KX_NOTE_CALL_VALUES, .payload = { p->data, size } };

	return size ? kx_fdr_note(w->stream, tsc, &note) : 0;
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct xray *w = ctx;
	uint64_t args[KX_FDR_READ_ARGS];
	unsigned n = call->nargs;
	int r = write_repairs(w, t);

	if (r)
		return r;
	if (call->func > KX_FDR_MAX_FUNC)
		return kx_err_set(w->err, -EOVERFLOW, "function id %u does not fit into an FDR trace, "
				  "whose ids end at %u", call->func, KX_FDR_MAX_FUNC);
	memcpy(args, call->args, n * sizeof(*args));
	if (call->has_caller && n < KX_FDR_READ_ARGS)
		args[n++] = call->return_address;
	r = write_values(w, call->enter, &call->values);
	if (r)
		return r;
	return kx_fdr_entry(w->stream, call->enter, t->cpu, call->func, args, n);
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct xray *w = ctx;
	int r;

	if (how == KX_LEAVE_REPAIRED) {
		if (KX_ARRAY_RESERVE(w->repairs, w->room, w->nrepairs))
			return -ENOMEM;
		w->repairs[w->nrepairs++] = (struct repair){ tsc, call->func };
		return 0;
	}
	r = write_repairs(w, t);
	/* A call that is still open stays open. */
	if (r || how == KX_LEAVE_OPEN)
		return r;
	if (call->has_result)
		r = kx_fdr_note(w->stream, tsc, &(struct kx_note){
			.kind = KX_NOTE_RESULT, .result.value = call->result });
	if (!r)
		r = write_values(w, tsc, &call->exit_values);
	if (r)
		return r;
	return kx_fdr_exit(w->stream, tsc, t->cpu, call->func, how == KX_LEAVE_TAIL);
}

static int on_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	struct xray *w = ctx;
	int r = write_repairs(w, t);

	return r ? r : kx_fdr_cpu(w->stream, tsc, cpu);
}

static int on_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
		   uint64_t entries, uint64_t exits)
{
	const struct kx_note note = { .kind = KX_NOTE_LOSS, .loss = { entries, exits, from, to } };
	struct xray *w = ctx;
	int r = write_repairs(w, t);

	return r ? r : kx_fdr_note(w->stream, to, &note);
}

static int on_event(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
		    const uint8_t *data, uint32_t size)
{
	struct xray *w = ctx;
	int r = write_repairs(w, t);

	w->typed += type != 0;
	w->cut += size > MAX_EVENT;
	return r ? r : kx_fdr_custom(w->stream, tsc, data, size > MAX_EVENT ? MAX_EVENT : size);
}

static int on_note(void *ctx, struct kx_call_thread *t, const struct kx_fdr_record *rec)
{
	struct xray *w = ctx;
	int r = write_repairs(w, t);

	return r ? r : kx_fdr_custom(w->stream, rec->tsc, rec->data, rec->size);
}

static int on_sample(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint64_t ip)
{
	const struct kx_note note = { .kind = KX_NOTE_SAMPLE, .sample.ip = ip };
	struct xray *w = ctx;
	int r = write_repairs(w, t);

	return r ? r : kx_fdr_note(w->stream, tsc, &note);
}

static int on_sched(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *i)
{
	const struct kx_note note = { .kind = KX_NOTE_SCHED, .sched = *i };
	struct xray *w = ctx;
	int r = write_repairs(w, t);

	return r ? r : kx_fdr_note(w->stream, i->to, &note);
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct xray *w = ctx;
	int r = write_repairs(w, t);

	(void)tsc;
	if (!r)
		r = kx_fdr_thread_end(w->stream);
	w->stream = NULL;
	return r;
}

/* The time of day at the trace's first record, from its first buffer. */
static int find_wall_time(const struct kx_export *x, struct kx_fdr_options *o, struct kx_err *err)
{
	struct kx_fdr_cursor *c;
	struct kx_fdr_record rec = { 0 };
	uint64_t usec;
	int r = kx_fdr_file_cursor(x->file, &c);

	if (r)
		return kx_err_set(err, r, "out of memory");
	if (kx_fdr_next(c, &rec, err) > 0 && rec.kind == KX_RECORD_BUFFER) {
		usec = rec.wall_sec * 1000000 + rec.wall_usec;
		if (kx_fdr_next(c, &rec, err) > 0 && rec.tsc > o->start_tsc)
			usec -= kx_trace_ns(rec.tsc - o->start_tsc, x->tsc_hz) / 1000;
		if (usec < rec.wall_sec * 1000000 + 1000000 && usec <= INT64_MAX) {
			o->wall_sec = usec / 1000000;
			o->wall_usec = (uint32_t)(usec % 1000000);
		}
	}
	kx_fdr_cursor_free(c);
	return 0;
}

static int get_options(const struct kx_export *x, struct kx_fdr_options *o, struct kx_err *err)
{
	const char *version = x->option(x, "xray-version");

	*o = (struct kx_fdr_options){
		.version = KX_FDR_MAX_VERSION, .tsc_hz = x->info->tsc_hz,
		.constant_tsc = x->info->constant_tsc, .nonstop_tsc = x->info->nonstop_tsc,
		.start_tsc = kx_calls_get_totals(x->calls)->first_tsc,
	};
	if (version && (version[0] < '1' || version[0] > '5' || version[1]))
		return kx_err_set(err, -EINVAL, "--xray-version is a number from 1 to 5, not '%s'",
				  version);
	if (version)
		o->version = version[0] - '0';
	if (!o->start_tsc)
		o->start_tsc = 1; /* llvm-xray treats 0 as no time */
	return find_wall_time(x, o, err);
}

static int write_map(const struct kx_export *x, struct kx_err *err)
{
	char *path, *text;
	int r = 0;

	if (!x->out_path)
		return 0;
	path = kx_output_map_path(x->out_path);
	if (!path)
		return kx_err_set(err, -ENOMEM, "out of memory");
	if (x->names->has_map) {
		r = kx_map_write(path, &x->names->map, err);
	} else if (!access(path, F_OK) &&
		   asprintf(&text, "%s belongs to an older trace and would name functions wrongly: remove "
			    "it", path) >= 0) {
		x->notice(x, text);
		free(text);
	}
	free(path);
	return r;
}

static void notify_changes(const struct xray *w)
{
	if (w->typed)
		w->x->notice(w->x, "typed events became custom events without a type");
	if (w->cut)
		w->x->notice(w->x, "events of more than 4096 bytes were cut there");
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct xray w = { .x = x, .err = err };
	const struct kx_call_visitor visitor = {
		.thread = on_thread, .enter = on_enter, .leave = on_leave, .cpu = on_cpu,
		.loss = on_loss, .event = on_event, .note = on_note, .sample = on_sample, .sched = on_sched,
		.end = on_end, .ctx = &w,
	};
	struct kx_fdr_options options;
	int r = get_options(x, &options, err);

	if (!r)
		r = kx_fdr_writer_new(x->out->fd, &options, &w.writer, err);
	if (!r) {
		r = kx_calls_walk(x->calls, KX_ORDER_THREAD, &visitor, x->progress,
				  x->progress_ctx, err);
		if (r && !err->text[0])
			kx_err_set(err, r, "the trace cannot be written: %s", strerror(-r));
	}
	if (!r)
		r = kx_fdr_finish(w.writer, 0, err);
	if (r == -EPIPE)
		x->out->error = r;
	if (!r)
		r = write_map(x, err);
	if (!r)
		notify_changes(&w);
	kx_fdr_writer_free(w.writer);
	free(w.repairs);
	return r;
}

static const struct kx_export_option options_of_xray[] = {
	{ "xray-version", "N", "version of the format, 1 to 5 (default 5)" },
	{ 0 },
};

const struct kx_exporter kx_exporter_xray = {
	.name = "xray",
	.suffix = ".export.xray",
	.summary = "XRay FDR of any version, balanced and repaired so that llvm-xray accepts it",
	.options = options_of_xray,
	.raw = true,
	.open_hint = "read it: llvm-xray account FILE",
	.run = run,
};
