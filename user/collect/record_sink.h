// SPDX-License-Identifier: BSD-2-Clause
/* Where the collector's records go: to the threads' streams, or into a flight recorder's store. */
#ifndef KX_RECORD_SINK_H
#define KX_RECORD_SINK_H

#include <stdint.h>

#include "bpf/wire.h"
#include "collect/flight_store.h"
#include "collect/thread_table.h"

struct kx_record_sink {
	/*
	 * Takes a record of the ring of @cpu; @tsc stands for its clock, @payload has rec->words
	 * words. Returns the events that wait to be released now, 0 or 1; errors: -ENOMEM.
	 */
	int (*record)(const struct kx_record_sink *sink, unsigned cpu,
		      const struct kx_wire_record *rec, uint64_t tsc, const uint64_t *payload);
	/*
	 * The same of @n entries and exits of one thread, without payload and flags but KX_FUNC_AT_INSTRUCTION, faster; clocks are TSC, and raised to
	 * @start. Of an error none is taken.
	 */
	int (*calls)(const struct kx_record_sink *sink, unsigned cpu, const struct kx_wire_record *records, uint32_t n, uint64_t start);
	/* Running totals of the hits that thread @tid has lost, the newest from @from to @to. */
	int (*loss)(const struct kx_record_sink *sink, uint32_t tid, uint64_t entries,
		    uint64_t exits, uint64_t from, uint64_t to, uint16_t cpu);
	/* How many of the @taken hits were kept, and threads in the file. */
	void (*count)(const struct kx_record_sink *sink, uint64_t taken, uint64_t *kept,
		      uint64_t *threads);
	struct kx_thread_table *threads; /* all three are borrowed */
	struct kx_fdr_writer *writer;
	struct kx_flight_store *store;
};

/* Records go to @threads, which write to @writer. */
struct kx_record_sink kx_sink_to_threads(struct kx_thread_table *threads,
					 struct kx_fdr_writer *writer);
/* Records go to @store; those of threads' starts, names and ends to @threads too. */
struct kx_record_sink kx_sink_to_store(struct kx_flight_store *store,
				       struct kx_thread_table *threads);

/*
 * Hands a record to its thread; returns as kx_record_sink.record does. Padding and unknown kinds
 * are ignored.
 */
int kx_collect_record(struct kx_thread_table *threads, const struct kx_wire_record *rec,
		      uint64_t tsc, const uint64_t *payload);

#endif
