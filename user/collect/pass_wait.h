// SPDX-License-Identifier: BSD-2-Clause
/*
 * How long to wait before the next pass over rings whose writers do not wake the reader. A pass is due when an eighth of the fullest ring
 * has been filled, at the rate of the last interval. The rate may rise at any time: while anything is recorded, half of a ring at
 * KX_PASS_FASTEST is waited for at most, and while the process has a CPU. An interval in which it has none makes the wait a
 * tenth longer, up to what the caller wants: something else ends that wait when the process gets a CPU.
 */
#ifndef KX_PASS_WAIT_H
#define KX_PASS_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#define KX_PASS_FASTEST 30e6 /* records a second in one ring: what one thread writes that does nothing else */

struct kx_pass_wait {
	uint64_t hz;	 /* ticks a second */
	uint32_t nslots; /* of each ring */
	uint64_t last;	 /* TSC of the last note */
	double wait_ms;
};

/* @hz: ticks a second; @nslots: of each ring; @now: TSC. */
void kx_pass_wait_init(struct kx_pass_wait *w, uint64_t hz, uint32_t nslots, uint64_t now);
struct kx_pass_arrivals {
	uint64_t arrived; /* records that were new in the fullest ring; */
	uint64_t waiting; /* those that came during the pass */
	/* slots that the writers do not have back yet, some because an older one is not finished: of these a pass is due before three quarters of
	 * the ring are full (target_reader.h) */
	uint64_t held;
	bool runs; /* the process has had a CPU: it may begin to record at any moment */
};
/* At @now (TSC), after a pass. */
void kx_pass_wait_note(struct kx_pass_wait *w, uint64_t now, const struct kx_pass_arrivals *got);
/* Milliseconds, at most @most; 0 if the next pass is due now. */
int kx_pass_wait_ms(const struct kx_pass_wait *w, int most);

#endif
