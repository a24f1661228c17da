// SPDX-License-Identifier: BSD-2-Clause
/* A thread's events in order of time: its start, names and end, and when each may be written. */
#include "collect/thread_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Releases for which the events of a thread without a name are held back. */
#define MAX_WAITS 10
/* How many times as long a thread lingers while a call is open that began after its exit record: it may never return. */
#define IN_CALL 25
/* Calls that go through the call stack and into the stream at once. */
#define MAX_CALLS 64u

static bool has_life(const struct kx_thread *thread)
{
	return thread->id.pid || thread->stream || thread->exiting;
}

bool kx_thread_is_needed(const struct kx_thread *thread)
{
	return has_life(thread) || thread->nevents || thread->lost_entries || thread->lost_exits ||
	       (thread->stack && kx_callstack_depth(thread->stack));
}

static void set_name(struct kx_thread *thread, const uint64_t *comm)
{
	memcpy(thread->id.name, comm, KX_COMM_SIZE);
	thread->id.name[KX_COMM_SIZE] = 0;
}

/* From the next waiting record that names the current thread. */
static bool identify_by_events(struct kx_thread *thread, uint32_t from)
{
	for (uint32_t i = from; i < thread->nevents; i++) {
		const struct kx_event *e = &thread->events[i];

		if (e->kind == KX_EVENT_THREAD_NEW)
			return false;
		if (e->words < 2 ||
		    (e->kind != KX_EVENT_THREAD_NAME && e->kind != KX_EVENT_THREAD_EXIT))
			continue;
		thread->id.pid = (pid_t)e->func;
		set_name(thread, thread->payload + e->payload_at);
		return true;
	}
	return false;
}

/*
 * Finds out the thread's process and name, as of event number @at. False if they are unknown: the
 * thread is gone, and the record of its end, which has them, has not arrived yet.
 */
static bool identify(struct kx_thread *thread, uint32_t at)
{
	const struct kx_thread_options *o = &thread->table->o;
	const struct kx_process *process;

	if (thread->id.name[0])
		return true;
	/* the main thread has the name of its process, which may already be known */
	process = kx_process_table_find(o->processes, (pid_t)thread->tid);
	if (process && !process->ended && process->name[0]) {
		thread->id.pid = process->pid;
		thread->id.ns_tid = process->ns_pid;
		memcpy(thread->id.name, process->name, sizeof(thread->id.name));
		return true;
	}
	if (identify_by_events(thread, at))
		return true;
	if (o->look_up && o->look_up(o->look_up_ctx, thread->tid, &thread->id))
		return true;
	return kx_proc_thread((pid_t)thread->tid, &thread->id);
}

int kx_thread_open_stream(struct kx_thread *thread, uint64_t tsc)
{
	struct kx_thread_table *t = thread->table;
	const struct kx_process *process = NULL;
	const char *note = t->session_note;
	struct kx_fdr_identity written;

	if (!thread->id.pid)
		thread->id.pid = kx_process_table_first(t->o.processes);
	if (thread->id.pid) {
		process = kx_process_table_use(t->o.processes, thread->id.pid);
		if (!process)
			return -ENOMEM;
		if ((pid_t)thread->tid == thread->id.pid)
			kx_process_table_name(t->o.processes, thread->id.pid, thread->id.name);
	}
	written = kx_thread_fdr_identity(thread, process, tsc);
	thread->stream = kx_fdr_writer_thread_of(t->o.writer, &written);
	if (!thread->stream)
		return -ENOMEM;
	t->session_note = NULL;
	return note ? kx_fdr_custom(thread->stream, tsc, note, strlen(note)) : 0;
}

/* 1: the event must wait until the name is known. */
static int open_stream(struct kx_thread *thread, uint32_t at, bool last)
{
	if (!identify(thread, at) && !last &&
	    (thread->table->o.patient || thread->waited++ < MAX_WAITS))
		return 1;
	return kx_thread_open_stream(thread, thread->events[at].tsc);
}

/* The current thread ends; the kernel may give its id to another one. */
static int end_life(struct kx_thread *thread)
{
	const struct kx_event end = { .kind = KX_EVENT_THREAD_EXIT, .tsc = thread->exit_tsc,
				      .cpu = thread->cpu };
	int err = 0;

	if (thread->stream) {
		err = kx_thread_write_partners(thread, end.tsc);
		if (!err)
			err = kx_thread_feed(thread, &end);
	}
	if (err)
		return err;
	if ((pid_t)thread->tid == thread->id.pid)
		kx_process_table_ended(thread->table->o.processes, thread->id.pid,
				       thread->exit_tsc);
	kx_callstack_free(thread->stack);
	thread->stack = NULL;
	memset(&thread->id, 0, sizeof(thread->id));
	thread->waited = 0;
	thread->exiting = thread->counted = false;
	thread->exit_tsc = 0;
	memset(&thread->sched, 0, sizeof(thread->sched));
	return 0;
}

/* A busy thread always has waiting events, so the payload of released ones is dropped here. */
static void drop_used_payload(struct kx_thread *thread)
{
	uint32_t first = thread->npayload;

	/* most have none, and while an unfinished record is waited for there are millions of events */
	if (!first)
		return;
	for (uint32_t i = 0; i < thread->nevents; i++)
		if (thread->events[i].words && thread->events[i].payload_at < first)
			first = thread->events[i].payload_at;
	if (!first)
		return;
	thread->npayload -= first;
	memmove(thread->payload, thread->payload + first,
		thread->npayload * sizeof(*thread->payload));
	for (uint32_t i = 0; i < thread->nevents; i++)
		if (thread->events[i].words)
			thread->events[i].payload_at -= first;
}

/* Whether nothing at @tsc or later can belong to the thread that has announced its exit. */
static bool is_over(const struct kx_thread *thread, uint64_t tsc)
{
	uint64_t linger = thread->table->o.linger;

	if (!thread->exiting)
		return false;
	if (thread->stack && kx_callstack_top_tsc(thread->stack) > thread->exit_tsc)
		linger *= IN_CALL;
	return tsc > thread->exit_tsc + linger;
}

/*
 * The time before which all events of the thread have arrived. Where entries are written late
 * (o.delayed), that is the newest exit: the program has written all older entries before it,
 * because the calls that are still open were written with it and the others are over. An exit that is held is none of
 * these: calls that are open wait for their results.
 */
static uint64_t complete_until(const struct kx_thread *thread, uint64_t watermark)
{
	/* a stack: it has had calls, perhaps in an earlier file */
	bool has_calls = thread->stream || thread->stack;
	uint32_t i = thread->nevents;

	if (!thread->table->o.delayed || watermark == UINT64_MAX || thread->nevents > KX_MAX_HELD ||
	    is_over(thread, watermark))
		return watermark;
	while (i--) {
		const struct kx_event *e = &thread->events[i];

		if (e->tsc < watermark && !e->held &&
		    (e->kind == KX_EVENT_EXIT || e->kind == KX_EVENT_TAIL_EXIT ||
		     e->kind == KX_EVENT_UNWIND || e->kind == KX_EVENT_THREAD_EXIT ||
		     e->kind == KX_EVENT_THREAD_NEW))
			return e->tsc + 1;
		has_calls |= !kx_event_type(e->kind)->metadata;
	}
	/* no calls pending: release names up to the watermark */
	return has_calls ? 0 : watermark;
}

static int take_start(struct kx_thread *thread, const struct kx_event *e)
{
	const uint64_t *words = thread->payload + e->payload_at;
	pid_t parent = e->words > 2 ? (pid_t)(uint32_t)words[2] : 0;
	pid_t ns_tid = e->words > 2 ? (pid_t)(words[2] >> 32) : 0;
	/* the exit record of the tid's previous thread may be lost */
	int err = has_life(thread) ? end_life(thread) : 0;

	if (err)
		return err;
	thread->id.pid = (pid_t)e->func;
	thread->id.ns_tid = ns_tid == (pid_t)thread->tid ? 0 : ns_tid;
	set_name(thread, words);
	if ((pid_t)thread->tid != thread->id.pid)
		return 0;
	return kx_process_table_born(thread->table->o.processes, thread->id.pid, parent,
				     thread->id.ns_tid, thread->id.name, e->tsc);
}

static int take_name(struct kx_thread *thread, const struct kx_event *e)
{
	char before[sizeof(thread->id.name)];
	int err = 0;

	/* exec by another thread of the process: it takes over the id of the main thread */
	if (thread->exiting)
		err = end_life(thread);
	if (err)
		return err;
	memcpy(before, thread->id.name, sizeof(before));
	thread->id.pid = (pid_t)e->func;
	set_name(thread, thread->payload + e->payload_at);
	if ((pid_t)thread->tid == thread->id.pid)
		err = kx_process_table_renamed(thread->table->o.processes, thread->id.pid,
					       thread->id.name, e->tsc);
	if (err || !thread->stream || !strcmp(before, thread->id.name))
		return err;
	return kx_thread_write_name(thread, e->tsc);
}

static int take_end(struct kx_thread *thread, const struct kx_event *e)
{
	int err = thread->exiting ? end_life(thread) : 0;

	if (!err && e->words >= 2) {
		thread->id.pid = (pid_t)e->func;
		set_name(thread, thread->payload + e->payload_at);
		thread->cpu = e->cpu;
	}
	thread->exiting = true;
	thread->exit_tsc = e->tsc;
	return err;
}

/* 1: this event and those after it must wait. */
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
		/* dropped for a thread without calls: it has no stream */
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
	return err ? err : kx_thread_feed(thread, e);
}

/*
 * Most events are calls that only go through the call stack into the stream, so they do it in runs. How many of the first @n did, before
 * @until; then the next one goes the long way.
 */
static uint32_t take_calls(struct kx_thread *thread, const struct kx_event *events, uint32_t n, uint64_t until, int *err)
{
	struct kx_callstack_counts *counts = thread->table->counts;
	struct kx_fdr_call calls[MAX_CALLS];
	uint32_t done = 0, count = MAX_CALLS, written;

	if (!thread->stream || !thread->stack || thread->exiting || thread->sched.where == KX_SCHED_OFF)
		return 0;
	while (count == MAX_CALLS && !*err) {
		uint32_t exits = 0;

		count = kx_callstack_simple_calls(thread->stack, events + done, n - done < MAX_CALLS ? n - done : MAX_CALLS, until, calls);
		*err = kx_fdr_calls(thread->stream, calls, count, &written);
		for (uint32_t i = 0; i < written; i++)
			exits += calls[i].action != KX_FDR_ENTRY;
		counts->exits += exits;
		counts->entries += written - exits;
		done += written;
		if (written)
			thread->cpu = calls[written - 1].cpu;
	}
	if (done)
		thread->sched.ran = true;
	return done;
}

int kx_thread_release(struct kx_thread *thread, uint64_t watermark, size_t *released)
{
	uint64_t last_tsc = 0, until;
	uint32_t n = 0;
	int err = 0;

	if (!thread->sorted && kx_event_sort(&thread->table->sort, thread->events, thread->nevents))
		return -ENOMEM;
	thread->sorted = true;
	until = complete_until(thread, watermark);
	thread->table->partners = thread->table->counts->orphans_of_loss;
	while (n < thread->nevents && thread->events[n].tsc < until) {
		uint32_t simple = take_calls(thread, thread->events + n, thread->nevents - n, until, &err);

		n += simple;
		if (simple)
			last_tsc = thread->events[n - 1].tsc;
		if (err)
			break;
		if (simple)
			continue;
		err = take_event(thread, n, watermark == UINT64_MAX);
		if (err)
			break;
		last_tsc = thread->events[n++].tsc;
	}
	if (err > 0)
		err = 0;
	if (!err)
		err = kx_thread_write_partners(thread, last_tsc);
	*released += n;
	thread->nevents -= n;
	if (n) {
		memmove(thread->events, thread->events + n, thread->nevents * sizeof(*thread->events));
		drop_used_payload(thread);
	}
	if (!err && !thread->nevents && is_over(thread, watermark))
		err = end_life(thread);
	return err;
}
