// SPDX-License-Identifier: BSD-2-Clause
/*
 * The traced threads: what was taken out of the rings for each and waits for its
 * turn, its call stack, its stream in the file, its name.
 *
 * Who a thread is says the record of its start; threads older than the recording are looked up in
 * /proc when they first have something to tell. When a thread has ended, everything of it is freed.
 */
#ifndef KX_THREAD_TABLE_H
#define KX_THREAD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/callstack.h"
#include "collect/event.h"
#include "trace/fdr_writer.h"
#include "collect/proc_thread.h"
#include "collect/process_table.h"

struct kx_thread_table;
struct kx_thread;

struct kx_thread_options {
	struct kx_fdr_writer *writer; /* pointers are borrowed */
	const uint8_t *traits; /* per function id, see callstack.h */
	uint32_t ntraits;
	struct kx_process_table *processes;
	const char *session_note; /* a custom event of the first stream, or NULL */
	uint64_t linger;     /* ticks for which the kernel may go on in the name of a thread that ended */
	/*
	 * Entries may come long after they happened, though before their call's exit and before all
	 * that is called inside it: a thread's events, KX_MAX_HELD of them at most, are then held
	 * back until a newer exit has come.
	 */
	bool delayed;
	/* A dump of a flight recorder: unnamed threads are held until a name record arrives. */
	bool patient;
	/* Where else the name of a thread may be found, before /proc; or NULL. */
	bool (*look_up)(const void *ctx, uint32_t tid, struct kx_thread_identity *out);
	const void *look_up_ctx;
	size_t max_threads;  /* with more in memory, no names of further ones are kept; 0: no limit */
};

#define KX_MAX_HELD 8192u

/* NULL if memory ran out. */
struct kx_thread_table *kx_thread_table_new(const struct kx_thread_options *options);
void kx_thread_table_free(struct kx_thread_table *t);

/* The thread with that id, made on first use; NULL if memory ran out. */
struct kx_thread *kx_thread_table_get(struct kx_thread_table *t, uint32_t tid);
/*
 * The same for an event that is no hit but only says who the thread is: NULL also if it is not known
 * and there are too many, which is counted.
 */
struct kx_thread *kx_thread_table_get_for_metadata(struct kx_thread_table *t, uint32_t tid);

/* The thread of that id if it runs and has a name; an options.look_up with the table for context. */
bool kx_thread_table_identity(const void *table, uint32_t tid, struct kx_thread_identity *out);

/*
 * Appends a copy of @ev and of its @payload (ev->words words). The events of one ring must come in
 * the order in which they stand there. Errors: -ENOMEM.
 */
int kx_thread_push(struct kx_thread *thread, const struct kx_event *ev, const uint64_t *payload);

/* Running totals of what the thread has lost; what is new becomes a gap from @from to @to. */
int kx_thread_push_loss(struct kx_thread *thread, uint64_t entries, uint64_t exits, uint64_t from,
			uint64_t to, uint16_t cpu);

/* The same for what was newly lost. */
int kx_thread_push_gap(struct kx_thread *thread, uint64_t entries, uint64_t exits, uint64_t from,
		       uint64_t to, uint16_t cpu);

/*
 * Hands everything older than @watermark to the file, each thread's in order of time. Adds to the
 * counters; *released: events that wait no more. Errors: the FDR writer's, -ENOMEM.
 */
int kx_thread_table_release(struct kx_thread_table *t, uint64_t watermark,
			    struct kx_callstack_counts *counts, uint64_t *migrations,
			    size_t *released);

/*
 * After all is released: tells of the threads that are off their CPUs when the recording ends, at
 * @tsc. Errors: the FDR writer's.
 */
int kx_thread_table_end_sched(struct kx_thread_table *t, uint64_t tsc);

/*
 * After all is released: ends the threads that have open calls and exist no more, because the record
 * of their end was lost. To be released once more. Errors: -ENOMEM.
 */
int kx_thread_table_end_gone(struct kx_thread_table *t);

/*
 * To be called now and then: looks at a part of the threads and ends those that have been gone for a
 * whole round. Errors: -ENOMEM.
 */
int kx_thread_table_sweep(struct kx_thread_table *t);

/* Threads in memory, and records of threads that were left out because these were too many. */
size_t kx_thread_table_size(const struct kx_thread_table *t);
uint64_t kx_thread_table_unnamed(const struct kx_thread_table *t);
/* Bytes that are reserved for waiting events. */
size_t kx_thread_table_held(const struct kx_thread_table *t);

#endif
