// SPDX-License-Identifier: BSD-2-Clause
#include "collect/record_sink.h"

#include <errno.h>

#include "collect/event.h"

int kx_collect_record(struct kx_thread_table *threads, const struct kx_wire_record *rec,
		      uint64_t tsc, const uint64_t *payload)
{
	struct kx_event ev = {
		.tsc = tsc, .sp = rec->sp, .func = rec->func, .cpu = rec->cpu, .kind = rec->kind
	};
	const struct kx_event_type *type;
	struct kx_thread *thread;
	unsigned most;
	int code;

	if (rec->kind == KX_EVENT_PAD || rec->kind >= KX_EVENT_KINDS)
		return 0;
	type = kx_event_type(rec->kind);
	most = type->words;
	if (KX_EVENT_IS_CALL(rec->kind)) {
		ev.func &= ~KX_FUNC_FLAGS;
		ev.has_values = (rec->func & KX_FUNC_VALUES) != 0;
		ev.has_caller = (rec->func & KX_FUNC_CALLER) != 0;
		ev.held = ev.has_caller && rec->kind != KX_EVENT_ENTRY;
		ev.has_caller &= !ev.held;
		ev.is_marker = (rec->func & KX_FUNC_MARKER) != 0;
		ev.is_instant = ev.is_marker && rec->kind == KX_EVENT_ENTRY && rec->func & KX_FUNC_INSTANT;
		if (ev.has_values)
			most = KX_WIRE_MAX_WORDS;
	}
	ev.words = (uint8_t)(rec->words < most ? rec->words : most);
	thread = type->metadata ? kx_thread_table_get_for_metadata(threads, rec->tid)
				: kx_thread_table_get(threads, rec->tid);
	if (!thread)
		return type->metadata ? 0 : -ENOMEM;
	code = kx_thread_push(thread, &ev, payload);
	return code ? code : 1;
}

static int to_threads(const struct kx_record_sink *sink, unsigned cpu,
		      const struct kx_wire_record *rec, uint64_t tsc, const uint64_t *payload)
{
	(void)cpu;
	return kx_collect_record(sink->threads, rec, tsc, payload);
}

static int calls_to_threads(const struct kx_record_sink *sink, unsigned cpu, const struct kx_wire_record *records, uint32_t n, uint64_t start)
{
	struct kx_thread *thread = kx_thread_table_get(sink->threads, records[0].tid);
	int code = thread ? kx_thread_push_calls(thread, records, n, start) : -ENOMEM;

	(void)cpu;
	return code ? code : (int)n;
}

static int loss_to_threads(const struct kx_record_sink *sink, uint32_t tid, uint64_t entries,
			   uint64_t exits, uint64_t from, uint64_t to, uint16_t cpu)
{
	struct kx_thread *thread = kx_thread_table_get(sink->threads, tid);

	return thread ? kx_thread_push_loss(thread, entries, exits, from, to, cpu) : -ENOMEM;
}

static void count_written(const struct kx_record_sink *sink, uint64_t taken, uint64_t *kept,
			  uint64_t *threads)
{
	(void)taken;
	*kept = kx_fdr_writer_hits(sink->writer);
	*threads = kx_fdr_writer_threads(sink->writer);
}

struct kx_record_sink kx_sink_to_threads(struct kx_thread_table *threads,
					 struct kx_fdr_writer *writer)
{
	return (struct kx_record_sink){ .record = to_threads,
					.calls = calls_to_threads,
					.loss = loss_to_threads,
					.count = count_written,
					.threads = threads,
					.writer = writer };
}

static int to_store(const struct kx_record_sink *sink, unsigned cpu,
		    const struct kx_wire_record *rec, uint64_t tsc, const uint64_t *payload)
{
	kx_flight_store_put(sink->store, cpu, rec, tsc, payload);
	/* The store may overwrite a start record while the thread still runs. */
	if (!kx_event_type(rec->kind)->lifecycle)
		return 0;
	return kx_collect_record(sink->threads, rec, tsc, payload);
}

static int calls_to_store(const struct kx_record_sink *sink, unsigned cpu, const struct kx_wire_record *records, uint32_t n, uint64_t start)
{
	for (uint32_t i = 0; i < n; i++) {
		struct kx_wire_record plain = records[i];

		plain.func &= ~KX_FUNC_AT_INSTRUCTION;
		kx_flight_store_put(sink->store, cpu, &plain, plain.clock < start ? start : plain.clock, NULL);
	}
	return 0;
}

static int loss_to_store(const struct kx_record_sink *sink, uint32_t tid, uint64_t entries,
			 uint64_t exits, uint64_t from, uint64_t to, uint16_t cpu)
{
	kx_flight_store_put_loss(sink->store, tid, entries, exits, from, to, cpu);
	return 0;
}

/* No file yet: its dumps count their own. */
static void count_kept(const struct kx_record_sink *sink, uint64_t taken, uint64_t *kept,
		       uint64_t *threads)
{
	(void)sink;
	*kept = taken;
	*threads = 0;
}

struct kx_record_sink kx_sink_to_store(struct kx_flight_store *store,
				       struct kx_thread_table *threads)
{
	return (struct kx_record_sink){ .record = to_store,
					.calls = calls_to_store,
					.loss = loss_to_store,
					.count = count_kept,
					.threads = threads,
					.store = store };
}
