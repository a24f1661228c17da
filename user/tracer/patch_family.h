// SPDX-License-Identifier: BSD-2-Clause
/*
 * The processes that share what a recording in process has mapped, and one flag (--follow): that
 * which was patched, and all that it and its children have forked since. Each has jumps in a code
 * of its own. They are found by what they have mapped, not by whose children they are: parents may
 * have ended.
 */
#ifndef KX_PATCH_FAMILY_H
#define KX_PATCH_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* The rings: where each of them has them, and which memory that is. */
struct kx_patch_family {
	uint64_t at, size;
	uint64_t device, inode; /* as stat(2) has them; inode 0: there is no family */
};

/* By the rings of process @pid at @at. Errors: stat(2)'s. */
int kx_patch_family_make(pid_t pid, uint64_t at, uint64_t size, struct kx_patch_family *out);
/* By any process of it. Errors: -ENOENT (nothing of kxray is in it, or its flag is its own),
 * -ESRCH, -EPERM, -ENOMEM. */
int kx_patch_family_find(pid_t pid, struct kx_patch_family *out);
/* Whether the process is one of it. False with *@sure false: that cannot be found out. */
bool kx_patch_family_has(const struct kx_patch_family *f, pid_t pid, bool *sure);

struct kx_patch_family_removal {
	size_t processes;	  /* out of which something was taken */
	size_t restored, foreign; /* see struct kx_patch_removal, of all */
	size_t stays; /* processes where something stays: memory mapped or code writable, or all of
			 it after an error */
	size_t waiting; /* processes whose jumps stay for now: they have a debugger, or their
			   threads cannot be stopped, or are frozen (then only memory stays) */
	pid_t pid;	/* one of these, or else of those; 0: there is none */
	char why[256];	/* of that one */
	double stopped_ms;
};

/*
 * kx_patch_remove in all of them, also in those that are forked meanwhile: looks until there is
 * none left. Tries those again for
 * @wait_ms that cannot be changed now. May be called again where something stays. Errors: -ENOMEM;
 * opendir(3)'s.
 */
int kx_patch_family_remove(const struct kx_patch_family *f, unsigned wait_ms,
			   struct kx_patch_family_removal *out, struct kx_err *err);

#endif
