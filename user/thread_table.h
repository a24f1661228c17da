// SPDX-License-Identifier: BSD-2-Clause
/*
 * The traced threads: what was taken out of the rings for each and waits for its
 * turn, its call stack, its stream in the file, its name.
 */
#ifndef KX_THREAD_TABLE_H
#define KX_THREAD_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "callstack.h"
#include "event.h"
#include "fdr_writer.h"

/* A waiting event; its arguments, if any, are kept beside it. */
struct kx_thread_event {
	uint64_t tsc;
	uint64_t sp;
	uint32_t func;
	uint16_t cpu;
	uint8_t kind; /* enum kx_event_kind */
	uint8_t nargs;
	uint32_t args_at; /* set by kx_thread_push */
	uint32_t order;   /* set by kx_thread_push */
};

struct kx_thread_table;
struct kx_thread;

/*
 * NULL if memory ran out. @traits, @writer and @session_note are borrowed; the note (or NULL) goes
 * into the first stream as its custom event.
 */
struct kx_thread_table *kx_thread_table_new(struct kx_fdr_writer *writer, const uint8_t *traits,
					    uint32_t ntraits, const pid_t *pids, size_t npids,
					    const char *session_note);
void kx_thread_table_free(struct kx_thread_table *t);

/*
 * From now on entries may come long after they happened, though before their call's exit and before
 * all that is called inside it. A thread's events, KX_MAX_HELD of them at most, are then held back
 * until a newer exit has come.
 */
void kx_thread_table_delayed(struct kx_thread_table *t);
#define KX_MAX_HELD 8192u

/* The thread with that id, made on first use; NULL if memory ran out. */
struct kx_thread *kx_thread_table_get(struct kx_thread_table *t, uint32_t tid);

/* Appends; @args has ev->nargs words. The events of one ring must come in their order there. */
int kx_thread_push(struct kx_thread *thread, const struct kx_thread_event *ev,
		   const uint64_t *args);

/* Running totals of what the thread has lost; what is new becomes a gap from @from to @to. */
int kx_thread_push_loss(struct kx_thread *thread, uint64_t entries, uint64_t exits, uint64_t from,
			uint64_t to, uint16_t cpu);

/* @comm: 16 bytes, as the kernel has it. A change of name goes into the stream at @tsc. */
int kx_thread_set_name(struct kx_thread *thread, pid_t pid, const char *comm, uint64_t tsc);

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

#endif
