// SPDX-License-Identifier: BSD-2-Clause
/*
 * One thread's way on and off its CPUs while it is recorded: what the kernel says of it, one
 * thing after the other, becomes the intervals that the trace tells (see sched_clock.h).
 */
#ifndef KX_SCHED_TRACK_H
#define KX_SCHED_TRACK_H

#include "sched_clock.h"
#include "thread_table.h"

/* All zero: nothing is known yet. */
struct kx_sched_track {
	uint64_t switches; /* of the thread, at its last leaving or return */
	uint64_t out, wake;
	uint32_t waker;
	char state;
	uint8_t where;     /* enum kx_sched_where */
	bool has_wake;     /* since it was last back */
	bool from_start;   /* it was off when the recording began: switches is not known */
	bool ran;          /* it has called something, so it is not off since the start */
};

enum kx_sched_where { KX_SCHED_UNKNOWN, KX_SCHED_ON, KX_SCHED_OFF };

static inline bool kx_sched_is_event(uint8_t kind)
{
	return kind >= KX_EVENT_SCHED_OUT && kind <= KX_EVENT_WAKE;
}

/*
 * Takes the next event (one of kx_sched_is_event), in order of time. True if a time off the CPU
 * has ended by it, which is *@out then. Where a record of it is lost, no time off the CPU is
 * claimed. @start: when the recording began.
 */
bool kx_sched_track_feed(struct kx_sched_track *t, const struct kx_thread_event *ev, uint64_t start,
			 struct kx_sched_interval *out);

/* The recording ends at @tsc: true if the thread is off its CPU, since *@out. */
bool kx_sched_track_end(struct kx_sched_track *t, uint64_t tsc, struct kx_sched_interval *out);

#endif
