// SPDX-License-Identifier: BSD-2-Clause
/*
 * The probes' own time. A recorded duration includes what runs after the entry's timestamp and before the
 * exit's; the callers' durations include all that the probes of nested calls take. The recorder measures
 * both for each kind of probes (doctor/calibrate.h) and writes them into the map's session; the
 * trace itself keeps what was recorded, and readers subtract (calls/open_calls.h).
 *
 * The probes take longer after a pause, in which other code has used the caches. A call's additions depend on how long
 * the thread had passed no probe before the call's entry, and how long before its exit: nothing up to the first of
 * the measured pauses, what was measured at the last one beyond that, in between on lines. An entry takes another way
 * through the kernel than an exit, so one that comes at once after an exit but long after the thread's last entry
 * takes longer, too: the additions for the pause since the last entry, less those for the pause since the last probe.
 *
 *   "probe_costs": {"pauses_ticks": [N, N, N],
 *                   "kinds": [{"entry": "emulated", "exit": "return", "offset_ticks": N,
 *                   "cost_ticks": N, "tail_cost_ticks": N,
 *                   "entry_pauses": {"offset_ticks": [0, N, N], "cost_ticks": [0, N, N]},
 *                   "reentry_pauses": {"offset_ticks": [0, N, N], "cost_ticks": [0, N, N]},
 *                   "exit_pauses": {"offset_ticks": [0, N, N], "cost_ticks": [0, N, N]}}, ...], "functions": "aab-..."}
 *
 * All of it is as when the recording began; what was measured while it ran scales it (trace/probe_scale.h).
 *
 * "exit" is "return", "instruction" (its return instructions have probes) or "jump" (the jumps that lead to these have).
 * The n-th letter of "functions" is the kind of function n, from 1 on: "a" is the first one, "-" none. In some processes
 * a function can have another one: trace/exit_moves.h. Files without pauses are read as ones without additions.
 */
#ifndef KX_PROBE_COST_H
#define KX_PROBE_COST_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/exit_moves.h"
#include "trace/probe_scale.h"

#define KX_PROBE_KINDS 16
#define KX_PROBE_PAUSES 3
#define KX_PROBE_NO_PAUSE UINT32_MAX /* no pause is longer */

/* Additions to a call's offset and to its cost, in ticks, by the length of the pause; the first ones are 0. */
struct kx_pause_cost {
	uint32_t offset[KX_PROBE_PAUSES], cost[KX_PROBE_PAUSES];
};

struct kx_probe_cost {
	const char *entry, *exit; /* borrowed; for writing only */
	uint32_t offset;          /* ticks of a call's own duration */
	uint32_t cost;            /* ticks that a call takes from its callers' time, with the offset */
	uint32_t tail_cost;       /* the same for one that leaves by a tail jump */
	uint32_t counted;         /* ... for one that a budget only counts; not written */
	struct kx_pause_cost entry_pause;   /* since the thread's last probe */
	struct kx_pause_cost reentry_pause; /* since its last entry, if it had an exit after that */
	struct kx_pause_cost exit_pause;    /* since its last probe */
	uint64_t most;            /* ticks; no call takes more from its callers' time. Set by reading */
	bool steps_offset, steps_cost; /* which scale they have. Set by reading */
};

/* All zero: nothing is known, nothing is subtracted. */
struct kx_probe_costs {
	struct kx_probe_cost kinds[KX_PROBE_KINDS]; /* the first is of functions without a known kind */
	uint8_t nkinds;                             /* with that one */
	uint8_t *kind_of;                           /* by function id */
	uint32_t n;                                 /* ids below this have a kind */
	uint32_t pauses[KX_PROBE_PAUSES];           /* ticks, ascending; all 0: writes none */
	struct kx_probe_scale *scales;              /* in order of time, the first one at 0; not written */
	size_t nscales;
	struct kx_exit_moves moves; /* not written */
};

/* Takes what a session has; what is missing or out of range is left at 0. Errors: -ENOMEM. */
int kx_probe_costs_read(const json_t *session, struct kx_probe_costs *out);
/* Puts the kinds into a session. */
void kx_probe_costs_write(const struct kx_probe_costs *costs, json_t *session);
/* The same for the kinds of @n functions, by id - 1, if the session has kinds. Errors: -ENOMEM. */
int kx_probe_costs_write_functions(json_t *session, const uint8_t *kind_of, size_t n);
void kx_probe_costs_free(struct kx_probe_costs *costs);

/* What an ended call's probes have taken. */
struct kx_probe_taken {
	uint64_t offset, cost;
};

/* Ticks before a call's entry without a probe and without an entry, and before its exit without a probe. */
struct kx_probe_pauses {
	uint64_t entry, reentry, exit;
};

/* Adds what the pauses add to a call of that kind. */
void kx_probe_taken_add_pauses(struct kx_probe_taken *taken, const struct kx_probe_costs *costs,
			       const struct kx_probe_cost *kind, const struct kx_probe_pauses *pauses);

/*
 * Scales it to the time @tsc, if there are scales. *@at: the place of the scale at an earlier time, 0 at first; moved on.
 */
static inline void kx_probe_taken_scale(struct kx_probe_taken *taken, const struct kx_probe_costs *costs,
					const struct kx_probe_cost *kind, uint64_t tsc, uint32_t *at)
{
	const struct kx_probe_scale *scale;

	if (!costs->nscales)
		return;
	while (*at + 1 < costs->nscales && costs->scales[*at + 1].tsc <= tsc)
		++*at;
	scale = &costs->scales[*at];
	taken->offset = taken->offset * (kind->steps_offset ? scale->stepped : scale->cheap) / KX_PROBE_SCALE_ONE;
	taken->cost = taken->cost * (kind->steps_cost ? scale->stepped : scale->cheap) / KX_PROBE_SCALE_ONE;
}

static inline const struct kx_probe_cost *kx_probe_cost_of(const struct kx_probe_costs *costs,
							   uint32_t func)
{
	return &costs->kinds[func < costs->n ? costs->kind_of[func] : 0];
}

/* That of a call which process @pid has begun at @entered (TSC). */
const struct kx_probe_cost *kx_probe_cost_of_call(const struct kx_probe_costs *costs, int32_t pid,
						  uint32_t func, uint64_t entered);
/* Ticks: no call of @func takes more from its callers' time, in any process. */
uint64_t kx_probe_cost_most(const struct kx_probe_costs *costs, uint32_t func);

#endif
