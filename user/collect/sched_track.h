// SPDX-License-Identifier: BSD-2-Clause
/*
 * One thread's way on and off its CPUs while it is recorded: what the kernel says of it, one
 * thing after the other, becomes the intervals that the trace tells (see sched_clock.h).
 */
#ifndef KX_SCHED_TRACK_H
#define KX_SCHED_TRACK_H

#include "trace/off_cpu.h"
#include "collect/event.h"

/* All zero: nothing is known yet. */
struct kx_sched_track {
	uint64_t out, wake;
	uint32_t switches; /* of the thread, at its last leaving or return */
	uint32_t waker;
	char state;
	uint8_t where;     /* enum kx_sched_where */
	bool has_wake;     /* since it was last back */
	bool from_start;   /* it was off when the recording began: switches is not known */
	bool ran;          /* it has called something, so it is not off since the start */
	bool proven;       /* it has called something since it left, at @out: it may be back */
};

enum kx_sched_where { KX_SCHED_UNKNOWN, KX_SCHED_ON, KX_SCHED_OFF };

static inline bool kx_sched_is_event(uint8_t kind)
{
	return kind >= KX_EVENT_SCHED_OUT && kind <= KX_EVENT_WAKE;
}

struct kx_sched_base {
	uint64_t start;  /* when the recording began, ticks */
	uint64_t tsc_hz; /* ticks a second */
};

/*
 * Takes the next event (one of kx_sched_is_event), in order of time. True if a time off the CPU
 * has ended by it, which is *@out then (it may have ended before, see kx_sched_track_call).
 */
bool kx_sched_track_feed(struct kx_sched_track *t, const struct kx_event *ev,
			 const struct kx_sched_base *base, struct kx_sched_interval *out);

/*
 * The thread enters or leaves a function at @tsc though it is KX_SCHED_OFF: either the scheduler
 * itself is traced and this is the last that the thread does before the switch, or the record of its
 * return is lost. @next is the next leaving or return that is known to come, or NULL. True if a time
 * off the CPU has ended before the call, which is *@out then.
 */
bool kx_sched_track_call(struct kx_sched_track *t, uint64_t tsc, const struct kx_event *next,
			 const struct kx_sched_base *base, struct kx_sched_interval *out);

/* The recording ends at @tsc: true if the thread is off its CPU, since *@out. */
bool kx_sched_track_end(struct kx_sched_track *t, uint64_t tsc, struct kx_sched_interval *out);

#endif
