// SPDX-License-Identifier: BSD-2-Clause
/*
 * How the probes' own time changes while a recording runs: on a shared machine a processor's speed differs by up to a
 * third from minute to minute. The recorder repeats some calls of its calibration, and the map's session has what they took,
 * in thousandths of what they had taken at first, with the time (TSC) from which on that holds:
 *
 *   "probe_costs": {..., "scales": [[0, CHEAP, STEPPED], [TSC, CHEAP, STEPPED], ...]}
 *
 * STEPPED is for what is single-stepped: offsets of calls with such an entry, costs of those with such an entry or a probed
 * exit; CHEAP is for all others. Without scales, all is as at first.
 */
#ifndef KX_PROBE_SCALE_H
#define KX_PROBE_SCALE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KX_PROBE_SCALE_ONE 1000
#define KX_PROBE_SCALE_MOST 16000 /* larger ones are read and written as this */
#define KX_PROBE_SCALES 1024	  /* a series has no more */
#define KX_PROBE_SCALE_RECENT 5	  /* measurements of which a median is taken; odd */

struct kx_probe_scale {
	uint64_t tsc; /* from when on it holds; of a measurement, its time */
	uint32_t cheap, stepped; /* thousandths */
};

/* Being recorded; all zero: nothing was measured. */
struct kx_probe_scales {
	struct kx_probe_scale items[KX_PROBE_SCALES];
	size_t n;
	struct kx_probe_scale recent[KX_PROBE_SCALE_RECENT]; /* in order of time */
	size_t nrecent;
};

/*
 * Adds a measurement, which is later than those before it. The series gets medians of the most recent ones, before which
 * stand two of KX_PROBE_SCALE_ONE, what the calibration measured at first. The first median holds from the beginning, further ones are added where one differs by more than 5 percent from the last
 * one, from the middle one's time on. A full series loses every second one. Returns whether the series has changed.
 */
bool kx_probe_scales_add(struct kx_probe_scales *s, const struct kx_probe_scale *measured);

/* Puts the series into a session that has "probe_costs"; replaces another one. */
void kx_probe_scales_write(const struct kx_probe_scales *s, json_t *session);

/*
 * The series of "probe_costs" @costs, in order of time, to *@out (free with free()) and *@n; a list that is not
 * like the one above is left out as a whole. Errors: -ENOMEM.
 */
int kx_probe_scales_read(const json_t *costs, struct kx_probe_scale **out, size_t *n);

#endif
