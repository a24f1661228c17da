// SPDX-License-Identifier: BSD-2-Clause
/*
 * A glob on thread names (comm) as base/glob_steps.h has it: bit I of the set of
 * states means that the first I items of the glob have matched, an item being all but "*". It starts
 * with {0}, and each character c of the name makes
 *     set = (set << 1 & step[c]) | (set & loop)
 */
#ifndef KX_COMM_GLOB_H
#define KX_COMM_GLOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define KX_COMM_MAX 15 /* bytes of a name */

struct kx_comm_glob {
	uint32_t step[256]; /* bit I + 1: the character fits item I */
	uint32_t loop;	    /* bit I: a "*" follows I items */
	uint32_t accept;    /* the state in which all items have matched */
};

/*
 * Compiles what fnmatch(3) knows: *, ?, [..], backslash. -EINVAL if no name can match because it
 * would be too long, or if the glob is empty or ends in a backslash.
 */
int kx_comm_glob_compile(const char *glob, struct kx_comm_glob *out, struct kx_err *err);

/* What the BPF program does. */
bool kx_comm_glob_matches(const struct kx_comm_glob *g, const char *name);

#endif
