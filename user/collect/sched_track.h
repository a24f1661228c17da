// SPDX-License-Identifier: BSD-2-Clause
/*
 * One thread on and off its CPUs: the scheduler's events of the thread, in order of time, become
 * the off-CPU intervals of the trace (see trace/off_cpu.h).
 */
#ifndef KX_SCHED_TRACK_H
#define KX_SCHED_TRACK_H

#include "trace/off_cpu.h"
#include "collect/event.h"

/* All zero: no event yet. */
struct kx_sched_track {
	uint64_t out, wake;
	uint32_t switches; /* the thread's count, at the last leave or return */
	uint32_t waker;
	uint16_t waker_cpu;
	char state;
	uint8_t where;     /* enum kx_sched_where */
	bool has_wake;	   /* since the last return */
	bool from_start;   /* off when the recording began: switches is unknown */
	bool ran;	   /* it has made a call, so it is not off since the start */
	bool proven;	   /* it has made a call at @out, after the leave: it may have returned */
};

enum kx_sched_where { KX_SCHED_UNKNOWN, KX_SCHED_ON, KX_SCHED_OFF };

static inline bool kx_sched_is_event(uint8_t kind)
{
	return kind >= KX_EVENT_SCHED_OUT && kind <= KX_EVENT_WAKE;
}

struct kx_sched_base {
	uint64_t start;	 /* of the recording, TSC */
	uint64_t tsc_hz; /* ticks a second */
};

/*
 * Takes the next event (one of kx_sched_is_event), in order of time. True if it ends an interval
 * off the CPU, which is then in *@out (it may have ended earlier, see kx_sched_track_call).
 */
bool kx_sched_track_feed(struct kx_sched_track *t, const struct kx_event *ev,
			 const struct kx_sched_base *base, struct kx_sched_interval *out);

/*
 * The thread enters or leaves a function at @tsc although it is KX_SCHED_OFF: either the scheduler
 * itself is traced and this call is the last before the switch, or the record of the return is
 * lost.
 * @next is the next leave or return among the waiting events, or NULL. True if an interval off the
 * CPU ended before the call; it is then in *@out.
 */
bool kx_sched_track_call(struct kx_sched_track *t, uint64_t tsc, const struct kx_event *next,
			 const struct kx_sched_base *base, struct kx_sched_interval *out);

/* The recording ends at @tsc: true if the thread is off its CPU, in the open interval *@out. */
bool kx_sched_track_end(struct kx_sched_track *t, uint64_t tsc, struct kx_sched_interval *out);

#endif
