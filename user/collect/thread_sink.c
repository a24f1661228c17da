// SPDX-License-Identifier: BSD-2-Clause
/* The balanced events of a thread, into its stream of the trace. */
#include "collect/thread_internal.h"

#include <errno.h>

struct kx_fdr_identity kx_thread_fdr_identity(const struct kx_thread *thread,
					      const struct kx_process *process, uint64_t tsc)
{
	return (struct kx_fdr_identity){
		.pid = thread->id.pid,
		.tid = (int32_t)thread->tid,
		.ns_pid = process ? process->ns_pid : 0,
		.ns_tid = thread->id.ns_tid,
		.name = thread->id.name,
		.process = process ? kx_process_name_at(process, tsc) : NULL,
	};
}

int kx_thread_write_name(struct kx_thread *thread, uint64_t tsc)
{
	const struct kx_process *process =
		kx_process_table_find(thread->table->o.processes, thread->id.pid);
	const struct kx_note note = { .kind = KX_NOTE_THREAD,
				      .thread = kx_thread_fdr_identity(thread, process, tsc) };

	return kx_fdr_note(thread->stream, tsc, &note);
}

/* The payload of one of the waiting events; NULL if it has none. */
static const uint64_t *payload_of(const struct kx_thread *thread, const struct kx_event *ev)
{
	return ev->words ? thread->payload + ev->payload_at : NULL;
}

/* Of the entry or exit that is written next. */
static int write_values(struct kx_thread *thread, const struct kx_event *ev, const uint64_t *words, uint32_t n)
{
	const struct kx_note note = { .kind = KX_NOTE_CALL_VALUES, .payload = { words, n * sizeof(*words) } };

	return kx_fdr_note(thread->stream, ev->tsc, &note);
}

static int sink_entry(void *ctx, const struct kx_event *ev)
{
	struct kx_thread *thread = ctx;
	const uint64_t *payload = payload_of(thread, ev);
	int err;

	if (thread->table->o.callers && payload && (!ev->has_values || ev->has_caller))
		kx_caller_set_add(thread->table->o.callers, thread->id.pid, payload[ev->words - 1]);
	if (!ev->has_values || !ev->words)
		return kx_fdr_entry(thread->stream, ev->tsc, ev->cpu, ev->func, payload, ev->words);
	err = write_values(thread, ev, payload, ev->words - ev->has_caller);
	if (err)
		return err;
	return kx_fdr_entry(thread->stream, ev->tsc, ev->cpu, ev->func, payload + ev->words - ev->has_caller,
			    ev->has_caller);
}

static int sink_repairs(void *ctx, const struct kx_event *ev, uint32_t n)
{
	const struct kx_note note = { .kind = KX_NOTE_REPAIRED, .repaired.exits = n };
	struct kx_thread *thread = ctx;

	return kx_fdr_note(thread->stream, ev->tsc, &note);
}

static int sink_exit(void *ctx, const struct kx_event *ev, bool repaired)
{
	struct kx_thread *thread = ctx;

	if (repaired)
		return kx_fdr_added_exit(thread->stream, ev->tsc, ev->cpu, ev->func);
	if (ev->words && ev->has_values) {
		int err = write_values(thread, ev, payload_of(thread, ev), ev->words);

		if (err)
			return err;
	} else if (ev->words) {
		const struct kx_note note = { .kind = KX_NOTE_RESULT,
					      .result.value = (int64_t)*payload_of(thread, ev) };
		int err = kx_fdr_note(thread->stream, ev->tsc, &note);

		if (err)
			return err;
	}
	return kx_fdr_exit(thread->stream, ev->tsc, ev->cpu, ev->func,
			   ev->kind == KX_EVENT_TAIL_EXIT);
}

static int write_instant(struct kx_thread *thread, const struct kx_event *ev)
{
	const struct kx_event_type *type = kx_event_type(ev->kind);
	struct kx_note note = { 0 };

	if (!type->note)
		return 0;
	type->note(&note, ev, payload_of(thread, ev),
		   thread->stack ? kx_callstack_top(thread->stack) : 0);
	return kx_fdr_note(thread->stream, ev->tsc, &note);
}

static int write_gap(struct kx_thread *thread, uint64_t entries, uint64_t exits, uint64_t from,
		     uint64_t to)
{
	const struct kx_note note = { .kind = KX_NOTE_LOSS, .loss = { entries, exits, from, to } };

	return kx_fdr_note(thread->stream, to, &note);
}

int kx_thread_write_partners(struct kx_thread *thread, uint64_t tsc)
{
	struct kx_thread_table *t = thread->table;
	uint64_t exits = t->counts->orphans_of_loss - t->partners;

	t->partners = t->counts->orphans_of_loss;
	if (!exits || !thread->stream)
		return 0;
	return write_gap(thread, 0, exits,
			 thread->lost_to && thread->lost_to < tsc ? thread->lost_to : tsc, tsc);
}

int kx_thread_end_stream(struct kx_thread *thread)
{
	bool records = kx_fdr_thread_has_records(thread->stream);
	int err = kx_fdr_thread_end(thread->stream);

	thread->table->written += records && !thread->counted;
	thread->counted |= records;
	thread->stream = NULL;
	return err;
}

static int sink_other(void *ctx, const struct kx_event *ev)
{
	struct kx_thread *thread = ctx;
	const uint64_t *words;

	switch (ev->kind) {
	case KX_EVENT_MIGRATE:
		++*thread->table->migrations;
		thread->cpu = (uint16_t)ev->func;
		return kx_fdr_cpu(thread->stream, ev->tsc, thread->cpu);
	case KX_EVENT_LOSS:
		words = payload_of(thread, ev);
		return write_gap(thread, words[1], words[2], words[0], ev->tsc);
	case KX_EVENT_THREAD_EXIT:
		return kx_thread_end_stream(thread);
	default:
		return write_instant(thread, ev);
	}
}

int kx_thread_feed(struct kx_thread *thread, const struct kx_event *ev)
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
