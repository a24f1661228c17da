// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared by the files of the thread table: the table (thread_table.c), the order and life cycle of
 * one thread's events (thread_stream.c), what is written of them (thread_sink.c, thread_sched.c).
 */
#ifndef KX_THREAD_INTERNAL_H
#define KX_THREAD_INTERNAL_H

#include <stdbool.h>

#include "collect/event_sort.h"
#include "collect/sched_track.h"
#include "collect/thread_table.h"

/*
 * A thread id, and the events that wait under it. The kernel reuses ids, so events of several
 * threads, one after the other, can wait here at the same time: which thread an event belongs to is
 * known once the events are in order of time. The members after "life" are those of the current
 * thread.
 */
struct kx_thread {
	struct kx_thread_table *table;
	struct kx_thread *next_in_bucket, *next_active;
	uint32_t tid;
	bool active; /* has waiting events, or is about to end */
	bool names_process; /* a start or name record of its process is waiting */
	bool sorted;	    /* waiting events are in order of time */
	bool gone;	    /* not in /proc at the last sweep, and no event since */
	bool used;	    /* has had events since the last sweep */
	struct kx_event *events;
	uint32_t nevents, room;
	uint64_t *payload; /* of waiting events, in words */
	uint32_t npayload, payload_room;
	uint64_t lost_entries, lost_exits; /* totals already turned into gaps */
	uint64_t lost_to;		   /* end of the newest gap */
	uint64_t lost_from;		   /* start of the first one; UINT64_MAX: none */

	/* life */
	struct kx_thread_identity id; /* pid 0, name "": unknown */
	uint8_t waited; /* releases that have waited for the name of a thread that is gone */
	bool exiting;	/* since exit_tsc; hits in the kernel may follow for a short time */
	uint64_t exit_tsc;
	uint16_t cpu; /* of its last event */
	struct kx_callstack *stack;   /* NULL until needed */
	struct kx_fdr_thread *stream; /* NULL until something is written to the present file */
	bool counted; /* in table->written */
	struct kx_sched_track sched;
};

struct kx_thread_table {
	struct kx_thread_options o;
	const char *session_note; /* NULL once it is written */
	struct kx_thread *active;
	struct kx_thread **buckets;
	size_t nbuckets; /* a power of two */
	size_t nthreads;
	size_t swept;	 /* buckets swept so far, modulo nbuckets */
	size_t held;	 /* bytes of memory for waiting events, of all threads */
	struct kx_event_sort sort;
	uint64_t lost_from; /* of all threads, beside their own gaps */
	uint64_t unnamed;
	uint64_t written; /* threads whose stream has ended and has records, in any file */

	/* of the current release */
	struct kx_callstack_counts *counts;
	uint64_t *migrations;
	uint64_t partners; /* counts->orphans_of_loss that are already in a loss note */
};

/* thread_sched.c: if the thread is off its CPU, writes the interval up to @tsc, which stays open. */
int kx_thread_sched_cut(struct kx_thread *thread, uint64_t tsc);
/* thread_sched.c: an event of a thread that has its stream. Errors: the FDR writer's. */
int kx_thread_sched(struct kx_thread *thread, const struct kx_event *ev);
/* @ev, one of the waiting events, is a call of a thread that is off its CPU by its records. */
int kx_thread_sched_call(struct kx_thread *thread, const struct kx_event *ev);

/* thread_sink.c: ends the thread's stream. Errors: the FDR writer's. */
int kx_thread_end_stream(struct kx_thread *thread);
/* thread_sink.c: @ev through the call stack into the stream. Errors: the FDR writer's, -ENOMEM. */
int kx_thread_feed(struct kx_thread *thread, const struct kx_event *ev);
/* Adds a note of the thread's present name to its stream. */
int kx_thread_write_name(struct kx_thread *thread, uint64_t tsc);
/* Notes the exits that were left out since the last call because their entry is lost. */
int kx_thread_write_partners(struct kx_thread *thread, uint64_t tsc);
/* The thread as its notes show it at @tsc; borrows from @thread and @process (NULL: unknown). */
struct kx_fdr_identity kx_thread_fdr_identity(const struct kx_thread *thread,
					      const struct kx_process *process, uint64_t tsc);

/*
 * thread_stream.c: writes the events older than @watermark; see kx_thread_table_release. While the
 * thread's name is unknown, its later events may have to wait.
 */
int kx_thread_release(struct kx_thread *thread, uint64_t watermark, size_t *released);
/*
 * Opens the stream of a thread that has been identified as far as possible; @tsc: of the event that
 * needs it. Errors: the FDR writer's, -ENOMEM.
 */
int kx_thread_open_stream(struct kx_thread *thread, uint64_t tsc);
/* Whether it holds state that later events need. */
bool kx_thread_is_needed(const struct kx_thread *thread);

#endif
