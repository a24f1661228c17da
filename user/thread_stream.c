// SPDX-License-Identifier: BSD-2-Clause
/* A thread's stream: its events in order of time, balanced, into the file. */
#include "thread_impl.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fdr.h"

/* Passes that a thread without a name is held back for. */
#define MAX_WAITS 10

static int open_stream(struct kx_thread *thread, uint64_t tsc)
{
	struct kx_thread_table *t = thread->table;
	const char *note = t->session_note;

	if (thread->stream)
		return 0;
	thread->stream = kx_fdr_writer_thread(t->writer, thread->pid, (int32_t)thread->tid,
					      thread->name[0] ? thread->name : NULL,
					      kx_thread_process(thread));
	if (!thread->stream)
		return -ENOMEM;
	t->session_note = NULL;
	return note ? kx_fdr_custom(thread->stream, tsc, note, strlen(note)) : 0;
}

/* Writes "kxray:KIND {...}"; takes @json over. */
static int write_note(struct kx_thread *thread, uint64_t tsc, const char *kind, json_t *json)
{
	char *body = json ? json_dumps(json, JSON_COMPACT) : NULL, text[512];
	int n = body ? snprintf(text, sizeof(text), KX_FDR_NOTE_PREFIX "%s %s", kind, body) : -1;

	free(body);
	json_decref(json);
	if (n < 0 || (size_t)n >= sizeof(text))
		return -ENOMEM;
	return kx_fdr_custom(thread->stream, tsc, text, (size_t)n);
}

static int write_name(struct kx_thread *thread, const struct kx_thread_event *ev)
{
	char name[KX_COMM_SIZE + 1] = "";

	memcpy(name, thread->args + ev->args_at, KX_COMM_SIZE);
	return write_note(thread, ev->tsc, "thread",
			  json_pack("{s:i,s:i,s:s%}", "tid", (int)thread->tid, "pid",
				    (int)thread->pid, "name", name, strlen(name)));
}

static int sink_entry(void *ctx, const struct kx_event *ev)
{
	struct kx_thread *thread = ctx;

	return kx_fdr_entry(thread->stream, ev->tsc, ev->cpu, ev->func, ev->args, ev->nargs);
}

static int sink_repairs(void *ctx, const struct kx_event *ev, uint32_t n)
{
	return write_note(ctx, ev->tsc, "repaired", json_pack("{s:i}", "exits", (int)n));
}

static int write_result(struct kx_thread *thread, const struct kx_event *ev)
{
	char text[64];
	int n = snprintf(text, sizeof(text), KX_FDR_NOTE_PREFIX "result {\"value\":%lld}",
			 (long long)ev->args[0]);

	return kx_fdr_custom(thread->stream, ev->tsc, text, (size_t)n);
}

static int sink_exit(void *ctx, const struct kx_event *ev, bool repaired)
{
	struct kx_thread *thread = ctx;

	if (repaired)
		return kx_fdr_added_exit(thread->stream, ev->tsc, ev->cpu, ev->func);
	if (ev->nargs) {
		int err = write_result(thread, ev);

		if (err)
			return err;
	}
	return kx_fdr_exit(thread->stream, ev->tsc, ev->cpu, ev->func,
			   ev->kind == KX_EVENT_TAIL_EXIT);
}

static int write_sample(struct kx_thread *thread, const struct kx_event *ev)
{
	char text[64];
	int n;

	n = snprintf(text, sizeof(text), KX_FDR_NOTE_PREFIX "sample {\"ip\":\"0x%llx\"}",
		     (unsigned long long)ev->sp);
	return kx_fdr_custom(thread->stream, ev->tsc, text, (size_t)n);
}

static int write_gap(struct kx_thread *thread, uint64_t entries, uint64_t exits, uint64_t from,
		     uint64_t to)
{
	return write_note(thread, to, "loss",
			  json_pack("{s:I,s:I,s:I,s:I}", "entries", (json_int_t)entries, "exits",
				    (json_int_t)exits, "from", (json_int_t)from, "to",
				    (json_int_t)to));
}

/* Exits that are left out because their entry was lost are lost with it. */
static int write_partners(struct kx_thread *thread, uint64_t exits, uint64_t tsc)
{
	if (!exits || !thread->stream)
		return 0;
	return write_gap(thread, 0, exits,
			 thread->lost_to && thread->lost_to < tsc ? thread->lost_to : tsc, tsc);
}

static int sink_other(void *ctx, const struct kx_event *ev)
{
	struct kx_thread *thread = ctx;
	int err;

	switch (ev->kind) {
	case KX_EVENT_MIGRATE:
		++*thread->migrations;
		return kx_fdr_cpu(thread->stream, ev->tsc, ev->cpu);
	case KX_EVENT_LOSS:
		return write_gap(thread, ev->loss.entries, ev->loss.exits, ev->loss.from, ev->tsc);
	case KX_EVENT_SAMPLE:
		return write_sample(thread, ev);
	case KX_EVENT_THREAD_EXIT:
		memset(&thread->sched, 0, sizeof(thread->sched));
		err = kx_fdr_thread_end(thread->stream);
		thread->ended = true;
		thread->stream = NULL;
		return err;
	default:
		return 0;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct kx_thread_event *x = a, *y = b;

	if (x->tsc != y->tsc)
		return x->tsc < y->tsc ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* A thread that only ever migrated or ended has nothing to tell. */
static bool has_calls(const struct kx_thread *thread)
{
	if (thread->stream)
		return true;
	for (uint32_t i = 0; i < thread->nevents; i++)
		if (thread->events[i].kind != KX_EVENT_MIGRATE &&
		    thread->events[i].kind != KX_EVENT_NAME &&
		    thread->events[i].kind != KX_EVENT_THREAD_EXIT)
			return true;
	return false;
}

/* A busy thread always has events waiting: what belongs to released ones must go all the same. */
static void drop_used_args(struct kx_thread *thread)
{
	uint32_t first = thread->nargs;

	for (uint32_t i = 0; i < thread->nevents; i++)
		if (thread->events[i].nargs && thread->events[i].args_at < first)
			first = thread->events[i].args_at;
	thread->nargs -= first;
	memmove(thread->args, thread->args + first, thread->nargs * sizeof(*thread->args));
	for (uint32_t i = 0; i < thread->nevents; i++)
		if (thread->events[i].nargs)
			thread->events[i].args_at -= first;
}

/*
 * Up to where in time the story of the thread is complete. Where entries are written late, an exit
 * proves it: by then all older entries that will ever be written are, because the calls that go on
 * have been written with it, and the others are over.
 */
static uint64_t complete_until(const struct kx_thread *thread, uint64_t watermark)
{
	uint32_t i = thread->nevents;

	if (!thread->table->delayed || watermark == UINT64_MAX || thread->nevents > KX_MAX_HELD)
		return watermark;
	while (i--) {
		const struct kx_thread_event *e = &thread->events[i];

		if (e->tsc < watermark &&
		    (e->kind == KX_EVENT_EXIT || e->kind == KX_EVENT_TAIL_EXIT ||
		     e->kind == KX_EVENT_UNWIND || e->kind == KX_EVENT_THREAD_EXIT))
			return e->tsc + 1;
	}
	return 0;
}

int kx_thread_release(struct kx_thread *thread, uint64_t watermark,
			  struct kx_callstack_counts *counts, uint64_t *migrations,
			  size_t *released)
{
	const struct kx_callstack_sink sink = {
		.entry = sink_entry,
		.exit = sink_exit,
		.repairs = sink_repairs,
		.other = sink_other,
		.ctx = thread,
	};
	uint64_t partners = counts->orphans_of_loss, last_tsc = 0;
	bool calls = has_calls(thread);
	uint32_t n = 0;
	int err = 0;

	thread->migrations = migrations;
	if (calls && !thread->stream && !kx_thread_identify(thread) && watermark != UINT64_MAX &&
	    thread->waited++ < MAX_WAITS)
		return 0;
	if (!thread->sorted)
		qsort(thread->events, thread->nevents, sizeof(*thread->events), by_time);
	thread->sorted = true;
	watermark = complete_until(thread, watermark);
	for (; n < thread->nevents && !err; n++) {
		const struct kx_thread_event *e = &thread->events[n];
		struct kx_event ev = { .tsc = e->tsc,
				       .sp = e->sp,
				       .func = e->func,
				       .cpu = e->cpu,
				       .kind = e->kind,
				       .nargs = e->nargs };

		if (e->tsc >= watermark)
			break;
		last_tsc = e->tsc;
		if (!calls) {
			thread->ended |= e->kind == KX_EVENT_THREAD_EXIT;
			continue;
		}
		err = open_stream(thread, e->tsc);
		if (err)
			break;
		if (e->kind == KX_EVENT_NAME) {
			err = write_name(thread, e);
			continue;
		}
		if (kx_sched_is_event(e->kind)) {
			err = kx_thread_sched(thread, e);
			continue;
		}
		if (e->kind == KX_EVENT_LOSS) {
			ev.loss.from = thread->args[e->args_at];
			ev.loss.entries = thread->args[e->args_at + 1];
			ev.loss.exits = thread->args[e->args_at + 2];
			ev.nargs = 0;
		} else if (e->nargs) {
			memcpy(ev.args, thread->args + e->args_at, e->nargs * sizeof(*ev.args));
		}
		if (e->kind == KX_EVENT_THREAD_EXIT) {
			err = write_partners(thread, counts->orphans_of_loss - partners, e->tsc);
			partners = counts->orphans_of_loss;
		}
		thread->sched.ran |= e->kind <= KX_EVENT_TAIL_EXIT;
		if (!err)
			err = kx_callstack_feed(thread->stack, &ev, &sink, counts);
	}
	if (!err)
		err = write_partners(thread, counts->orphans_of_loss - partners, last_tsc);
	*released += n;
	thread->nevents -= n;
	memmove(thread->events, thread->events + n, thread->nevents * sizeof(*thread->events));
	for (uint32_t i = 0; i < thread->nevents; i++)
		thread->events[i].order = i;
	drop_used_args(thread);
	return err;
}
