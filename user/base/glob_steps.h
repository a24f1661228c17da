// SPDX-License-Identifier: BSD-2-Clause
/*
 * A glob as a small automaton that a BPF program can run: bit I of the set of states means that the
 * first I items of the glob have matched, an item being all but "*". It starts with {0}, and each
 * byte c of the text makes set = (set << 1 & step[c]) | (set & loop)
 */
#ifndef KX_GLOB_STEPS_H
#define KX_GLOB_STEPS_H

#include <stddef.h>
#include <stdint.h>

#define KX_GLOB_ITEMS 63 /* at most */

struct kx_glob_steps {
	uint64_t step[256]; /* bit I + 1: the byte fits item I */
	uint64_t loop;	    /* bit I: a "*" follows I items */
	uint64_t accept;    /* the state in which all items have matched */
};

/*
 * Compiles what fnmatch(3) knows: *, ?, [..], backslash. Errors: -E2BIG (more than @most items),
 * -EINVAL (it ends in a backslash).
 */
int kx_glob_steps_compile(const char *glob, unsigned most, struct kx_glob_steps *out);
/* The same for the very bytes of @text. Errors: -E2BIG. */
int kx_glob_steps_exactly(const char *text, size_t length, unsigned most,
			  struct kx_glob_steps *out);

/* What the BPF program does with a text that ends there: whether it matches. */
int kx_glob_steps_match(const struct kx_glob_steps *g, const char *text, size_t length);

#endif
