// SPDX-License-Identifier: BSD-2-Clause
/* Inside the thread table: who the threads are (thread_table.c), what they tell (thread_stream.c). */
#ifndef KX_THREAD_IMPL_H
#define KX_THREAD_IMPL_H

#include <stdbool.h>

#include "sched_track.h"
#include "thread_table.h"

#define KX_COMM_SIZE 16
#define KX_THREAD_BUCKETS 4096u /* a power of two */

struct kx_thread {
	struct kx_thread_table *table;
	struct kx_thread *next_in_bucket, *next_active;
	uint32_t tid;
	pid_t pid; /* 0 while unknown */
	char name[KX_COMM_SIZE + 1];
	bool active; /* has waiting events */
	bool ended;
	uint8_t waited; /* passes for the name of a thread that is gone */
	bool sorted; /* waiting events stand in order of time */
	struct kx_callstack *stack;
	struct kx_fdr_thread *stream;
	struct kx_thread_event *events;
	uint32_t nevents, room;
	uint64_t *args; /* arguments and losses of waiting events */
	uint32_t nargs, args_room;
	uint64_t lost_entries, lost_exits; /* totals already turned into gaps */
	uint64_t lost_to;		   /* end of the newest gap */
	uint64_t *migrations;
	struct kx_sched_track sched;
};

struct kx_thread_table {
	struct kx_fdr_writer *writer;
	const uint8_t *traits;
	uint32_t ntraits;
	struct process {
		pid_t pid;
		char name[KX_COMM_SIZE + 1]; /* when the recording began: it may be gone later */
	} * processes;
	size_t nprocesses;
	bool delayed; /* see kx_thread_table_delayed */
	const char *session_note; /* NULL once it is written */
	struct kx_thread *active;
	struct kx_thread *buckets[KX_THREAD_BUCKETS];
};

/* Finds out what is not known of it; false if the thread has no name and is gone: its end, which
 * has the name, is on its way. */
bool kx_thread_identify(struct kx_thread *thread);

/* The name of its process now or, if that is gone, as it was; NULL if unknown. */
const char *kx_thread_process(struct kx_thread *thread);

/* An event of the scheduler; the thread has its stream. Errors: the FDR writer's. */
int kx_thread_sched(struct kx_thread *thread, const struct kx_thread_event *ev);

/* Hands what is older than @watermark to the file; see kx_thread_table_release. */
int kx_thread_release(struct kx_thread *thread, uint64_t watermark,
		      struct kx_callstack_counts *counts, uint64_t *migrations, size_t *released);

#endif
