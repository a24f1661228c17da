// SPDX-License-Identifier: BSD-2-Clause
/* Inside the thread table: the table (thread_table.c), what the threads tell (thread_stream.c). */
#ifndef KX_THREAD_INTERNAL_H
#define KX_THREAD_INTERNAL_H

#include <stdbool.h>

#include "collect/sched_track.h"
#include "collect/thread_table.h"

/*
 * A thread id, and what waits under it. The kernel gives ids out again, so several threads may live
 * under it one after the other, and even wait at the same time: which one an event belongs to is
 * known once the events stand in order of time. What follows "life" is of the one that lives now.
 */
struct kx_thread {
	struct kx_thread_table *table;
	struct kx_thread *next_in_bucket, *next_active;
	uint32_t tid;
	bool active; /* has waiting events, or is about to end */
	bool tells_process; /* of what waits, something is about its process */
	bool sorted; /* waiting events stand in order of time */
	bool gone;   /* /proc did not have it at the last look, and nothing came since */
	struct kx_event *events;
	uint32_t nevents, room;
	uint64_t *payload; /* of waiting events, in words */
	uint32_t npayload, payload_room;
	uint64_t lost_entries, lost_exits; /* totals already turned into gaps */
	uint64_t lost_to;		   /* end of the newest gap */
	uint64_t lost_from;		   /* start of the first one; UINT64_MAX: none */

	/* life */
	pid_t pid;    /* 0 while unknown */
	pid_t ns_tid; /* in its own pid namespace; 0: the same, or not known */
	char name[KX_COMM_SIZE + 1];
	uint8_t waited; /* passes for the name of a thread that is gone */
	bool exiting;	/* since exit_tsc; what the kernel does in its name may go on a little */
	uint64_t exit_tsc;
	uint16_t cpu; /* of its last event */
	struct kx_callstack *stack;   /* NULL until needed */
	struct kx_fdr_thread *stream; /* NULL until there is something to tell */
	struct kx_sched_track sched;
};

struct kx_thread_table {
	struct kx_thread_options o;
	const char *session_note; /* NULL once it is written */
	struct kx_thread *active;
	struct kx_thread **buckets;
	size_t nbuckets; /* a power of two */
	size_t nthreads;
	size_t swept;	 /* buckets looked at so far */
	size_t held;	 /* bytes of memory for waiting events, of all threads */
	uint64_t unnamed;

	/* of the release that is under way */
	struct kx_callstack_counts *counts;
	uint64_t *migrations;
	uint64_t partners; /* counts->orphans_of_loss that the file tells of */
};

/* An event of the scheduler; the thread has its stream. Errors: the FDR writer's. */
int kx_thread_sched(struct kx_thread *thread, const struct kx_event *ev);
/* @ev, one of the waiting events, shows a thread at work that is said to be off its CPU. */
int kx_thread_sched_call(struct kx_thread *thread, const struct kx_event *ev);

/*
 * Hands what is older than @watermark to the file; see kx_thread_table_release. Where the thread's
 * name is not known yet, later ones may have to wait.
 */
int kx_thread_release(struct kx_thread *thread, uint64_t watermark, size_t *released);

/* The thread, or NULL. */
struct kx_thread *kx_thread_find(const struct kx_thread_table *t, uint32_t tid);

/* Whether anything is known of it that would be missed. */
bool kx_thread_is_needed(const struct kx_thread *thread);

#endif
