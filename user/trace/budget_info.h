// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a budget (record --max-overhead) did to the functions that did not fit it, in the map's session:
 *
 *   "budget": {"percent": 5.0, "taken_percent": 4.1, "limited": N, "all_in_seconds": S, "functions":
 *              [{"id": N, "calls": N, "recorded": N, "one_in": N, "out_seconds": S}, ...]}
 *
 * "calls" are all that were counted, "recorded" those of them that were recorded, both since the recording's beginning, also in the
 * map of a dump or of one file of several; "one_in": of so many calls one was recorded at the end, 0: the probes were out;
 * "out_seconds": for how long they were out, when nothing was counted. Functions that are not listed were recorded whole, but
 * for calls in the first "all_in_seconds", if that is more than 0: meanwhile the functions' probes went in, group by group.
 */
#ifndef KX_BUDGET_INFO_H
#define KX_BUDGET_INFO_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct kx_budget_entry {
	uint32_t id;
	uint32_t one_in; /* 1: all; 0: the probes were out */
	uint64_t calls, recorded;
	double out_seconds;
};

/* All zero: the trace has none. */
struct kx_budget_info {
	double percent, taken_percent; /* of the CPU time that the target used */
	double all_in_seconds;
	struct kx_budget_entry *entries; /* by id, ascending */
	size_t n;
};

/* Puts it into a session. Errors: -ENOMEM. */
int kx_budget_info_write(const struct kx_budget_info *info, json_t *session);
/* Takes what a session has; what is damaged is left out. Errors: -ENOMEM. Free with kx_budget_info_free. */
int kx_budget_info_read(const json_t *session, struct kx_budget_info *out);
void kx_budget_info_free(struct kx_budget_info *info);
/* That of function @id; NULL: it was recorded whole. */
const struct kx_budget_entry *kx_budget_info_find(const struct kx_budget_info *info, uint32_t id);

/*
 * "\nProbes went in group by group, ... " if they did, else ""; @info may be NULL. Returns @text, of @size bytes, 160 are enough.
 */
const char *kx_budget_info_text(const struct kx_budget_info *info, char *text, size_t size);
/* "recorded 75,271 of 1,204,331 calls, without probes for 2.5 s"; returns @text, of @size bytes, 120 are enough. */
const char *kx_budget_entry_text(const struct kx_budget_entry *e, char *text, size_t size);

#endif
