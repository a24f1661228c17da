// SPDX-License-Identifier: BSD-2-Clause
/*
 * Takes records out of the rings that a traced process writes itself (--in-process; tracer/target_rings.h). Beside the rings of
 * BPF programs, two things are different.
 *
 * Nothing is trusted. The process may write anything at any time: each record is copied once and then checked (target_reader.c), and a
 * ring whose head cannot be right is given up. What a process can still do is to make up calls of its own threads.
 *
 * Writers can be interrupted, and may never come back: a thread that is preempted, leaves the recorder by siglongjmp out of a signal
 * handler, or dies there. Its slot stays unfinished. Reading goes on behind such a slot, at most KX_TARGET_STUCK of them a ring,
 * and it is given up, which counts one lost call,
 *     - when it was first seen 100 ms ago, and its thread has finished a later record or does not exist any more
 *       (the slot may show the thread of the round before, then it is one call that is lost for a thread that was slow),
 *     - or 10 ms ago, and so many records are behind it that the ring is three quarters full: else more would be lost,
 *     - or 2 s ago, of which only the time counts in which some ring of the recording moves: a process that is stopped keeps its record.
 * A record that is finished after that is ignored, as its position has been passed. (If its slot is then in use for a later position,
 * that later record is damaged: it is unfinished again and lost, or, if it is taken in the few ns between the two threads' stores, has the
 * wrong thread or function.) So entries + exits + lost = calls.
 *
 * Order: a ring's unfinished slots keep the places that they would have if the ring stopped at the first of them: they limit the watermark
 * (see collector.c) by the newest reading of the clock at which that slot was not yet taken, and the ring's tail stays there. The
 * records behind it wait in the threads' queues, which are sorted by time.
 */
#ifndef KX_TARGET_READER_H
#define KX_TARGET_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "collect/target_threads.h"
#include "tracer/ring.h"
#include "tracer/target_rings.h"

#define KX_TARGET_STUCK 256

/* The rings of one process, or of it and its children; borrowed. rings NULL: there are none. */
struct kx_target_input {
	struct kx_rings *rings;
	struct kx_target_rings *memory; /* which holds them: the heartbeat and the losses */
	struct kx_target_processes processes;
};

struct kx_target_reader_options {
	struct kx_target_input in;
	uint32_t ntraits;   /* function ids are below it */
	uint64_t start_tsc; /* records are at most 1 s older */
	uint64_t tsc_hz;
	uint64_t slack; /* ticks: records are at most so much younger than the present time */
	uint64_t (*now)(void *ctx);
	/*
	 * Takes @n records of one thread, at least one, which were checked; they have no payload. All of them or none: errors are
	 * negative errno, which ends the pass.
	 */
	int (*records)(void *ctx, unsigned cpu, const struct kx_wire_record *records, uint32_t n);
	void *ctx;
};

struct kx_target_reader;

/* Errors: -ENOMEM. */
int kx_target_reader_new(const struct kx_target_reader_options *options, struct kx_target_reader **out);
void kx_target_reader_free(struct kx_target_reader *r);

/* A pass begins at @now (TSC): the heartbeat. @moved: some ring of the recording has, since the last pass. */
void kx_target_reader_begin(struct kx_target_reader *r, uint64_t now, bool moved);
/* No more calls are recorded: from now on all time counts for unfinished slots. */
void kx_target_reader_ending(struct kx_target_reader *r);

/* The ring's head, which was checked; of a ring that is given up, the position up to which it was read. */
uint64_t kx_target_reader_head(struct kx_target_reader *r, unsigned cpu);

/* What a pass knows of a ring. Times are TSC. */
struct kx_target_pass {
	uint64_t head;	    /* as kx_target_reader_head has returned it */
	uint64_t seen_head; /* at the previous pass */
	uint64_t last_now;  /* when that began: later positions were taken after it */
	uint64_t limit;	    /* positions that were not read yet were taken after it */
	uint64_t most;	    /* records to take at most */
};

/*
 * Takes records up to the head. *@read: the position up to which the ring was read; *@stuck: TSC, after which the oldest unfinished slot
 * was taken; UINT64_MAX: there is none. Errors: those of options.records.
 */
int kx_target_reader_take(struct kx_target_reader *r, unsigned cpu, const struct kx_target_pass *pass,
			  uint64_t *read, uint64_t *stuck);

/* At the end, counts what is left in the rings: call records, and slots that are not finished (as lost). */
uint64_t kx_target_reader_count_rest(struct kx_target_reader *r);

struct kx_target_reader_counts {
	uint64_t given_up; /* slots that were never finished */
	uint64_t invalid;  /* records that were not believed */
	unsigned damaged;  /* rings that were given up */
};

void kx_target_reader_get_counts(const struct kx_target_reader *r, struct kx_target_reader_counts *out);

/*
 * TSC: calls of any of the process's threads may have been lost since then, as slots were given up: which threads they belong to is
 * not known. UINT64_MAX: none was.
 */
uint64_t kx_target_reader_lost_after(const struct kx_target_reader *r);

/* Whether records and losses of thread @tid are believed. */
bool kx_target_reader_has_thread(struct kx_target_reader *r, uint32_t tid);

#endif
