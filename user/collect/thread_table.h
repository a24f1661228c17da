// SPDX-License-Identifier: BSD-2-Clause
/*
 * The traced threads: for each one the events that wait to be released, its call stack, its stream
 * in the file, its name.
 *
 * A thread's identity comes from its start record; that of a thread older than the recording is
 * read from /proc at its first event that is written. When a thread has ended, all its memory is
 * freed.
 */
#ifndef KX_THREAD_TABLE_H
#define KX_THREAD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/caller_set.h"
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
	uint64_t linger; /* ticks after a thread's exit record in which hits are still its own */
	/*
	 * Entries may be written long after they happened, though before the call's exit and before
	 * the calls inside it: at most KX_MAX_HELD events of a thread are then held back until a
	 * newer exit has arrived.
	 */
	bool delayed;
	/* A dump of a flight recorder: unnamed threads are held until a name record arrives. */
	bool patient;
	/* Where else the name of a thread may be found, before /proc; or NULL. */
	bool (*look_up)(const void *ctx, uint32_t tid, struct kx_thread_identity *out);
	const void *look_up_ctx;
	struct kx_caller_set *callers; /* gets the last payload word of each entry that is written (record --callers); or NULL */
	/* Memory for waiting events that is kept from one release to the next: page faults would cost more than the events. 0: little. */
	size_t idle_bytes;
	size_t max_threads; /* with so many, metadata adds no more threads; 0: no limit */
};

#define KX_MAX_HELD 8192u

/* NULL if memory ran out. */
struct kx_thread_table *kx_thread_table_new(const struct kx_thread_options *options);
void kx_thread_table_free(struct kx_thread_table *t);

/* The thread with that id, added on first use; NULL if memory ran out. */
struct kx_thread *kx_thread_table_get(struct kx_thread_table *t, uint32_t tid);
/*
 * The same for metadata: NULL also if the thread is not in the table and max_threads are, which is
 * counted.
 */
struct kx_thread *kx_thread_table_get_for_metadata(struct kx_thread_table *t, uint32_t tid);

/* The thread of that id if it runs and has a name: an options.look_up, @table its context. */
bool kx_thread_table_identity(const void *table, uint32_t tid, struct kx_thread_identity *out);

/*
 * Appends a copy of @ev and of its @payload (ev->words words). The events of one ring must come in
 * ring order. Errors: -ENOMEM.
 */
int kx_thread_push(struct kx_thread *thread, const struct kx_event *ev, const uint64_t *payload);

/* The same of @n entries and exits, all or none: see kx_record_sink.calls. */
int kx_thread_push_calls(struct kx_thread *thread, const struct kx_wire_record *records, uint32_t n, uint64_t start);

/* Running totals of lost hits; their increase becomes a gap from @from to @to (TSC). Errors:
 * -ENOMEM. */
int kx_thread_push_loss(struct kx_thread *thread, uint64_t entries, uint64_t exits, uint64_t from,
			uint64_t to, uint16_t cpu);

/* A gap of so many lost hits. Errors: -ENOMEM. */
int kx_thread_push_gap(struct kx_thread *thread, uint64_t entries, uint64_t exits, uint64_t from,
		       uint64_t to, uint16_t cpu);

/* Entries of any thread may have been lost since @tsc: exits without one count as those of lost calls. */
void kx_thread_table_lost_from(struct kx_thread_table *t, uint64_t tsc);

/*
 * Writes all events older than @watermark, each thread's in order of time. Adds to the counters;
 * *@released: events that no longer wait. Errors: the FDR writer's, -ENOMEM.
 */
int kx_thread_table_release(struct kx_thread_table *t, uint64_t watermark,
			    struct kx_callstack_counts *counts, uint64_t *migrations,
			    size_t *released);

/*
 * After all is released: writes the open intervals of threads that are off their CPUs when the
 * recording ends, at @tsc. Errors: the FDR writer's.
 */
int kx_thread_table_end_sched(struct kx_thread_table *t, uint64_t tsc);

/*
 * After all is released: ends the threads that have open calls but no longer exist, whose exit
 * record was lost. Release once more afterwards. Errors: -ENOMEM.
 */
int kx_thread_table_end_gone(struct kx_thread_table *t);

/*
 * Call it periodically: checks a part of the threads against /proc and ends those that were already
 * gone one round earlier. Frees memory for waiting events of those that had none since. Errors: -ENOMEM.
 */
int kx_thread_table_sweep(struct kx_thread_table *t);

/*
 * A rotated trace: its next file begins at the oldest open call or waiting event, or at @tsc if
 * nothing is older. (Entries that are written late may be of any time: then at the recording's start.)
 */
uint64_t kx_thread_table_oldest(const struct kx_thread_table *t, uint64_t tsc);
/*
 * Ends all streams; from now on threads write to @writer, whose file begins at what
 * kx_thread_table_oldest has returned. Calls that are open stay open in the old file and begin the
 * new one, after a note "continued". @tsc: the watermark of the last release. Returns these calls in
 * *@continued. Errors: the FDR writers', -ENOMEM; @writer is the present one even then.
 */
int kx_thread_table_switch(struct kx_thread_table *t, struct kx_fdr_writer *writer, uint64_t tsc,
			   uint64_t *continued);
/* Threads with records in any of the files; their streams may be open. */
uint64_t kx_thread_table_written(const struct kx_thread_table *t);

/* Threads in memory; and metadata records dropped because of max_threads. */
size_t kx_thread_table_size(const struct kx_thread_table *t);
uint64_t kx_thread_table_unnamed(const struct kx_thread_table *t);
/* Bytes allocated for waiting events. */
size_t kx_thread_table_held(const struct kx_thread_table *t);

#endif
