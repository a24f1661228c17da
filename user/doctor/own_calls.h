// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of kxray's own functions under probes, and what the probes of each call take: the raw values of the
 * calibration (calibrate.h). All times are in what the tracer's clock counts.
 */
#ifndef KX_OWN_CALLS_H
#define KX_OWN_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "tracer/tracer.h"

/*
 * The functions: three with a return probe, in the order of enum kx_cost by their entries, nop5 to stepped; two
 * that pause; three like the first ones, with a probed exit; one that leaves by a jump. Function i has id i + 1.
 */
enum {
	KX_OWN_RETURN = 0,
	KX_OWN_PAUSE_PUSH = 3,
	KX_OWN_PAUSE_SUB,
	KX_OWN_EXIT,
	KX_OWN_TAIL = KX_OWN_EXIT + 3,
	KX_OWN_CALLS
};

#define KX_OWN_IDLE_MAX 16

/* By the probes of one call: of its own duration, and of its caller's. */
struct kx_own_taken {
	uint64_t offset, cost;
};

/*
 * Probes all of them for tracer @t with @nargs words of arguments. The probes stay in @links, also after an error.
 * Errors: those of kx_uprobe_link and kx_modules_of_process.
 */
int kx_own_calls_attach(struct kx_tracer *t, unsigned nargs, struct kx_links *links,
			struct kx_err *err);

/* Calls function @i. */
void kx_own_call(unsigned i);

/* The records of function @i's calls, in order of time, at most @max; empties the rings. Returns how many. */
size_t kx_own_calls_take(struct kx_rings *rings, unsigned i, struct kx_wire_record *out, size_t max);

/* What @clock counts. */
uint64_t kx_own_calls_now(const struct kx_clock *clock);

/*
 * @n (at most KX_OWN_IDLE_MAX) calls of function @i, one after the other, into @out; @warm more calls before them.
 * Errors: -EIO (not recorded).
 */
int kx_own_calls_idle(struct kx_tracer *t, unsigned i, unsigned warm, size_t n,
		      struct kx_own_taken *out, struct kx_err *err);

/*
 * After a pause the probes' code and data have left the caches, so they take longer; and an entry's way through the
 * kernel, single-stepping above all, is another one than an exit's. So a series is three calls: the first one, which
 * returns at once, comes after a pause; the second one pauses itself, so its exit comes after a pause; the third one
 * does the same, and its entry, though at once after an exit, comes that long after the newest entry.
 */
enum { KX_OWN_BEFORE_ENTRY, KX_OWN_BEFORE_EXIT, KX_OWN_BEFORE_BOTH, KX_OWN_SERIES };

#define KX_OWN_AGAIN_MAX 8

/*
 * A series with pauses of @length by function @i, which is one that pauses, and @again (at most KX_OWN_AGAIN_MAX) more calls like the
 * third one, which @out has behind it. Errors: -EIO (not recorded).
 */
int kx_own_calls_pause(struct kx_tracer *t, unsigned i, uint64_t length, unsigned again,
		       struct kx_own_taken out[KX_OWN_SERIES + KX_OWN_AGAIN_MAX], struct kx_err *err);

#endif
