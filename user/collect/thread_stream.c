// SPDX-License-Identifier: BSD-2-Clause
/* A thread's stream: its events in order of time, balanced, into the file. */
#include "collect/thread_internal.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/fdr.h"

/* Passes that a thread without a name is held back for. */
#define MAX_WAITS 10

static bool has_life(const struct kx_thread *thread)
{
	return thread->pid || thread->stream || thread->exiting;
}

bool kx_thread_is_needed(const struct kx_thread *thread)
{
	return has_life(thread) || thread->nevents || thread->lost_entries || thread->lost_exits ||
	       (thread->stack && kx_callstack_depth(thread->stack));
}

static void set_name(struct kx_thread *thread, const uint64_t *comm)
{
	memcpy(thread->name, comm, KX_COMM_SIZE);
	thread->name[KX_COMM_SIZE] = 0;
}

/* What an event that waits says of the thread that lives before it. */
static bool identify_by_events(struct kx_thread *thread, uint32_t from)
{
	for (uint32_t i = from; i < thread->nevents; i++) {
		const struct kx_event *e = &thread->events[i];

		if (e->kind == KX_EVENT_THREAD_NEW)
			return false;
		if (e->words < 2 || (e->kind != KX_EVENT_THREAD_NAME && e->kind != KX_EVENT_THREAD_EXIT))
			continue;
		thread->pid = (pid_t)e->func;
		set_name(thread, thread->payload + e->payload_at);
		return true;
	}
	return false;
}

/*
 * Who the thread is, as of event number @at. False if nobody knows: it is gone, and its end, which has
 * the name, is on its way.
 */
static bool identify(struct kx_thread *thread, uint32_t at)
{
	const struct kx_process *process;
	const struct kx_thread *known;

	if (thread->name[0])
		return true;
	/* a first thread has the name of its process, which may be known from before */
	process = kx_process_table_find(thread->table->o.processes, (pid_t)thread->tid);
	if (process && !process->ended && process->name[0]) {
		thread->pid = process->pid;
		thread->ns_tid = process->ns_pid;
		memcpy(thread->name, process->name, sizeof(thread->name));
		return true;
	}
	if (identify_by_events(thread, at))
		return true;
	known = thread->table->o.known ? kx_thread_find(thread->table->o.known, thread->tid) : NULL;
	if (known && known->name[0] && !known->exiting) {
		thread->pid = known->pid;
		thread->ns_tid = known->ns_tid;
		memcpy(thread->name, known->name, sizeof(thread->name));
		return true;
	}
	return kx_proc_thread((pid_t)thread->tid, &thread->pid, &thread->ns_tid, thread->name);
}

/* The thread as it is at @tsc. */
static struct kx_fdr_identity identity(const struct kx_thread *thread,
				       const struct kx_process *process, uint64_t tsc)
{
	return (struct kx_fdr_identity){
		.pid = thread->pid,
		.tid = (int32_t)thread->tid,
		.ns_pid = process ? process->ns_pid : 0,
		.ns_tid = thread->ns_tid,
		.name = thread->name,
		.process = process ? kx_process_name_at(process, tsc) : NULL,
	};
}

/* 1: it must wait for its name. */
static int open_stream(struct kx_thread *thread, uint32_t at, bool last)
{
	struct kx_thread_table *t = thread->table;
	const struct kx_process *process = NULL;
	uint64_t tsc = thread->events[at].tsc;
	const char *note = t->session_note;
	struct kx_fdr_identity who;

	if (!identify(thread, at) && !last &&
	    (t->o.patient || thread->waited++ < MAX_WAITS))
		return 1;
	if (!thread->pid)
		thread->pid = kx_process_table_first(t->o.processes);
	if (thread->pid) {
		process = kx_process_table_tell(t->o.processes, thread->pid);
		if (!process)
			return -ENOMEM;
		if ((pid_t)thread->tid == thread->pid)
			kx_process_table_name(t->o.processes, thread->pid, thread->name);
	}
	who = identity(thread, process, tsc);
	thread->stream = kx_fdr_writer_thread_of(t->o.writer, &who);
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

static int write_name(struct kx_thread *thread, uint64_t tsc)
{
	const struct kx_fdr_identity who = identity(
		thread, kx_process_table_find(thread->table->o.processes, thread->pid), tsc);

	return write_note(thread, tsc, "thread", kx_fdr_identity_json(&who));
}

/* The words that came with an event. */
static const uint64_t *payload_of(const struct kx_thread *thread, const struct kx_event *ev)
{
	return ev->words ? thread->payload + ev->payload_at : NULL;
}

static int sink_entry(void *ctx, const struct kx_event *ev)
{
	struct kx_thread *thread = ctx;

	return kx_fdr_entry(thread->stream, ev->tsc, ev->cpu, ev->func, payload_of(thread, ev),
			    ev->words);
}

static int sink_repairs(void *ctx, const struct kx_event *ev, uint32_t n)
{
	return write_note(ctx, ev->tsc, "repaired", json_pack("{s:i}", "exits", (int)n));
}

static int write_result(struct kx_thread *thread, const struct kx_event *ev)
{
	char text[64];
	int n = snprintf(text, sizeof(text), KX_FDR_NOTE_PREFIX "result {\"value\":%lld}",
			 (long long)*payload_of(thread, ev));

	return kx_fdr_custom(thread->stream, ev->tsc, text, (size_t)n);
}

static int sink_exit(void *ctx, const struct kx_event *ev, bool repaired)
{
	struct kx_thread *thread = ctx;

	if (repaired)
		return kx_fdr_added_exit(thread->stream, ev->tsc, ev->cpu, ev->func);
	if (ev->words) {
		int err = write_result(thread, ev);

		if (err)
			return err;
	}
	return kx_fdr_exit(thread->stream, ev->tsc, ev->cpu, ev->func,
			   ev->kind == KX_EVENT_TAIL_EXIT);
}

static int write_instant(struct kx_thread *thread, const struct kx_event *ev)
{
	const struct kx_event_type *type = kx_event_type(ev->kind);
	char text[256];
	int n;

	if (!type->note)
		return 0;
	n = type->note(text, sizeof(text), ev, payload_of(thread, ev));
	if (n < 0 || (size_t)n >= sizeof(text))
		return -EINVAL;
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
static int write_partners(struct kx_thread *thread, uint64_t tsc)
{
	struct kx_thread_table *t = thread->table;
	uint64_t exits = t->counts->orphans_of_loss - t->partners;

	t->partners = t->counts->orphans_of_loss;
	if (!exits || !thread->stream)
		return 0;
	return write_gap(thread, 0, exits,
			 thread->lost_to && thread->lost_to < tsc ? thread->lost_to : tsc, tsc);
}

static int sink_other(void *ctx, const struct kx_event *ev)
{
	struct kx_thread *thread = ctx;
	const uint64_t *words;
	int err;

	switch (ev->kind) {
	case KX_EVENT_MIGRATE:
		++*thread->table->migrations;
		thread->cpu = (uint16_t)ev->func;
		return kx_fdr_cpu(thread->stream, ev->tsc, thread->cpu);
	case KX_EVENT_LOSS:
		words = payload_of(thread, ev);
		return write_gap(thread, words[1], words[2], words[0], ev->tsc);
	case KX_EVENT_THREAD_EXIT:
		err = kx_fdr_thread_end(thread->stream);
		thread->stream = NULL;
		return err;
	default:
		return write_instant(thread, ev);
	}
}

static int feed(struct kx_thread *thread, const struct kx_event *ev)
{
	const struct kx_callstack_sink sink = {
		.entry = sink_entry,
		.exit = sink_exit,
		.repairs = sink_repairs,
		.other = sink_other,
		.ctx = thread,
	};

	if (!thread->stack) {
		thread->stack = kx_callstack_new(thread->table->o.traits, thread->table->o.ntraits);
		if (!thread->stack)
			return -ENOMEM;
		if (thread->lost_from != UINT64_MAX)
			kx_callstack_lost_from(thread->stack, thread->lost_from);
	}
	return kx_callstack_feed(thread->stack, ev, &sink, thread->table->counts);
}

/* The life ends; another one may begin under the same id. */
static int end_life(struct kx_thread *thread)
{
	const struct kx_event end = { .kind = KX_EVENT_THREAD_EXIT, .tsc = thread->exit_tsc,
				      .cpu = thread->cpu };
	int err = 0;

	if (thread->stream) {
		err = write_partners(thread, end.tsc);
		if (!err)
			err = feed(thread, &end);
	}
	if (err)
		return err;
	if ((pid_t)thread->tid == thread->pid)
		kx_process_table_ended(thread->table->o.processes, thread->pid, thread->exit_tsc);
	kx_callstack_free(thread->stack);
	thread->stack = NULL;
	thread->pid = thread->ns_tid = 0;
	thread->name[0] = 0;
	thread->waited = 0;
	thread->exiting = false;
	thread->exit_tsc = 0;
	memset(&thread->sched, 0, sizeof(thread->sched));
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct kx_event *x = a, *y = b;

	if (x->tsc != y->tsc)
		return x->tsc < y->tsc ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* A busy thread always has events waiting: what belongs to released ones must go all the same. */
static void drop_used_payload(struct kx_thread *thread)
{
	uint32_t first = thread->npayload;

	for (uint32_t i = 0; i < thread->nevents; i++)
		if (thread->events[i].words && thread->events[i].payload_at < first)
			first = thread->events[i].payload_at;
	if (!first)
		return;
	thread->npayload -= first;
	memmove(thread->payload, thread->payload + first, thread->npayload * sizeof(*thread->payload));
	for (uint32_t i = 0; i < thread->nevents; i++)
		if (thread->events[i].words)
			thread->events[i].payload_at -= first;
}

/* Whether nothing from @tsc on can be the ending thread's. */
static bool is_over(const struct kx_thread *thread, uint64_t tsc)
{
	return thread->exiting && tsc > thread->exit_tsc + thread->table->o.linger;
}

/*
 * Up to where in time the story of the thread is complete. Where entries are written late, an exit
 * proves it: by then all older entries that will ever be written are, because the calls that go on
 * have been written with it, and the others are over.
 */
static uint64_t complete_until(const struct kx_thread *thread, uint64_t watermark)
{
	bool telling = thread->stream;
	uint32_t i = thread->nevents;

	if (!thread->table->o.delayed || watermark == UINT64_MAX || thread->nevents > KX_MAX_HELD ||
	    is_over(thread, watermark))
		return watermark;
	while (i--) {
		const struct kx_event *e = &thread->events[i];

		if (e->tsc < watermark &&
		    (e->kind == KX_EVENT_EXIT || e->kind == KX_EVENT_TAIL_EXIT ||
		     e->kind == KX_EVENT_UNWIND || e->kind == KX_EVENT_THREAD_EXIT ||
		     e->kind == KX_EVENT_THREAD_NEW))
			return e->tsc + 1;
		telling |= !kx_event_type(e->kind)->metadata;
	}
	/* where there is no story, names need not wait for it */
	return telling ? 0 : watermark;
}

/* The record of the end of who lived before may be lost. */
static int take_start(struct kx_thread *thread, const struct kx_event *e)
{
	const uint64_t *words = thread->payload + e->payload_at;
	pid_t parent = e->words > 2 ? (pid_t)(uint32_t)words[2] : 0;
	pid_t ns_tid = e->words > 2 ? (pid_t)(words[2] >> 32) : 0;
	int err = has_life(thread) ? end_life(thread) : 0;

	if (err)
		return err;
	thread->pid = (pid_t)e->func;
	thread->ns_tid = ns_tid == (pid_t)thread->tid ? 0 : ns_tid;
	set_name(thread, words);
	if ((pid_t)thread->tid != thread->pid)
		return 0;
	return kx_process_table_born(thread->table->o.processes, thread->pid, parent, thread->ns_tid,
				     thread->name, e->tsc);
}

static int take_name(struct kx_thread *thread, const struct kx_event *e)
{
	char before[sizeof(thread->name)];
	int err = 0;

	/* another thread of the process runs a program, and takes the id of the first one over */
	if (thread->exiting)
		err = end_life(thread);
	if (err)
		return err;
	memcpy(before, thread->name, sizeof(before));
	thread->pid = (pid_t)e->func;
	set_name(thread, thread->payload + e->payload_at);
	if ((pid_t)thread->tid == thread->pid)
		err = kx_process_table_renamed(thread->table->o.processes, thread->pid,
					       thread->name, e->tsc);
	if (err || !thread->stream || !strcmp(before, thread->name))
		return err;
	return write_name(thread, e->tsc);
}

static int take_end(struct kx_thread *thread, const struct kx_event *e)
{
	int err = thread->exiting ? end_life(thread) : 0;

	if (!err && e->words >= 2) {
		thread->pid = (pid_t)e->func;
		set_name(thread, thread->payload + e->payload_at);
		thread->cpu = e->cpu;
	}
	thread->exiting = true;
	thread->exit_tsc = e->tsc;
	return err;
}

/* 1: this one and what follows must wait. */
static int take_event(struct kx_thread *thread, uint32_t at, bool last)
{
	const struct kx_event *e = &thread->events[at];
	int err = is_over(thread, e->tsc) ? end_life(thread) : 0;

	if (err)
		return err;
	switch (e->kind) {
	case KX_EVENT_THREAD_NEW:
		return take_start(thread, e);
	case KX_EVENT_THREAD_NAME:
		return take_name(thread, e);
	case KX_EVENT_THREAD_EXIT:
		return take_end(thread, e);
	case KX_EVENT_MIGRATE:
	case KX_EVENT_UNWIND:
		/* a thread that only ever migrates has nothing to tell, nor where it goes to end */
		if (!thread->stream || thread->exiting)
			return 0;
		break;
	default:
		if (!thread->stream)
			err = open_stream(thread, at, last);
		if (err)
			return err;
	}
	if (kx_sched_is_event(e->kind))
		return kx_thread_sched(thread, e);
	thread->cpu = e->cpu;
	thread->sched.ran |= KX_EVENT_IS_CALL(e->kind);
	if (thread->sched.where == KX_SCHED_OFF && KX_EVENT_IS_CALL(e->kind))
		err = kx_thread_sched_call(thread, e);
	return err ? err : feed(thread, e);
}

int kx_thread_release(struct kx_thread *thread, uint64_t watermark, size_t *released)
{
	uint64_t last_tsc = 0, until;
	uint32_t n = 0;
	int err = 0;

	if (!thread->sorted)
		qsort(thread->events, thread->nevents, sizeof(*thread->events), by_time);
	thread->sorted = true;
	until = complete_until(thread, watermark);
	thread->table->partners = thread->table->counts->orphans_of_loss;
	while (n < thread->nevents && thread->events[n].tsc < until) {
		err = take_event(thread, n, watermark == UINT64_MAX);
		if (err)
			break;
		last_tsc = thread->events[n++].tsc;
	}
	if (err > 0)
		err = 0;
	if (!err)
		err = write_partners(thread, last_tsc);
	*released += n;
	thread->nevents -= n;
	memmove(thread->events, thread->events + n, thread->nevents * sizeof(*thread->events));
	for (uint32_t i = 0; i < thread->nevents; i++)
		thread->events[i].order = i;
	drop_used_payload(thread);
	if (!err && !thread->nevents && is_over(thread, watermark))
		err = end_life(thread);
	return err;
}
