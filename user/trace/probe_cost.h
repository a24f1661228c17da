// SPDX-License-Identifier: BSD-2-Clause
/*
 * The probes' own time. A recorded duration includes what runs after the entry's timestamp and before the
 * exit's; the callers' durations include all that the probes of nested calls take. The recorder measures
 * both for each kind of probes (doctor/calibrate.h) and writes them into the map's session; the
 * trace itself keeps what was recorded, and readers subtract (calls/open_calls.h).
 *
 *   "probe_costs": {"kinds": [{"entry": "emulated", "exit": "return", "offset_ticks": N,
 *                   "cost_ticks": N, "tail_cost_ticks": N}, ...], "functions": "aab-..."}
 *
 * The n-th letter of "functions" is the kind of function n, from 1 on: "a" is the first one, "-" none.
 */
#ifndef KX_PROBE_COST_H
#define KX_PROBE_COST_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define KX_PROBE_KINDS 16

struct kx_probe_cost {
	const char *entry, *exit; /* borrowed; for writing only */
	uint32_t offset;          /* ticks of a call's own duration */
	uint32_t cost;            /* ticks that a call takes from its callers' time, with the offset */
	uint32_t tail_cost;       /* the same for one that leaves by a tail jump */
};

/* All zero: nothing is known, nothing is subtracted. */
struct kx_probe_costs {
	struct kx_probe_cost kinds[KX_PROBE_KINDS]; /* the first is of functions without a known kind */
	uint8_t nkinds;                             /* with that one */
	uint8_t *kind_of;                           /* by function id */
	uint32_t n;                                 /* ids below this have a kind */
};

/* Takes what a session has; what is missing or out of range is left at 0. Errors: -ENOMEM. */
int kx_probe_costs_read(const json_t *session, struct kx_probe_costs *out);
/* Puts the kinds into a session. */
void kx_probe_costs_write(const struct kx_probe_costs *costs, json_t *session);
/* The same for the kinds of @n functions, by id - 1, if the session has kinds. Errors: -ENOMEM. */
int kx_probe_costs_write_functions(json_t *session, const uint8_t *kind_of, size_t n);
void kx_probe_costs_free(struct kx_probe_costs *costs);

static inline const struct kx_probe_cost *kx_probe_cost_of(const struct kx_probe_costs *costs,
							   uint32_t func)
{
	return &costs->kinds[func < costs->n ? costs->kind_of[func] : 0];
}

#endif
