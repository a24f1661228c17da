// SPDX-License-Identifier: BSD-2-Clause
/*
 * What other clocks were at some ticks of the trace: the snapshots of a map's session
 * (record/clock_log.h writes them). Between two of them, the clocks are on the straight line.
 */
#ifndef KX_CLOCK_SNAPSHOTS_H
#define KX_CLOCK_SNAPSHOTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KX_MAX_SNAPSHOTS 64 /* later ones are ignored, but for the last */

struct kx_snapshot {
	int64_t tsc;			       /* ticks */
	int64_t monotonic, boottime, realtime; /* ns */
	int64_t error; /* ns that the clocks, from the snapshot before up to this one, may be off */
};

struct kx_snapshots {
	struct kx_snapshot items[KX_MAX_SNAPSHOTS];
	size_t n;
};

/*
 * Reads those of @session (may be NULL) that are whole, later than the one before in ticks,
 * CLOCK_MONOTONIC and CLOCK_BOOTTIME, and in the first half of the numbers' range, so that sums
 * stay within it. None, if the first one is not.
 */
void kx_snapshots_read(const json_t *session, struct kx_snapshots *out);

/*
 * The clocks at @tsc: outside of the snapshots on the line through the first and the last, with a
 * single one by @tsc_hz. False if there is none, or if that is out of the numbers' range, as in a
 * damaged map.
 */
bool kx_snapshots_at(const struct kx_snapshots *s, uint64_t tsc_hz, uint64_t tsc,
		     struct kx_snapshot *out);

#endif
