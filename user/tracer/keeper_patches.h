// SPDX-License-Identifier: BSD-2-Clause
/* Processes out of which the keeper takes kxray's jumps when its owner has ended. */
#ifndef KX_KEEPER_PATCHES_H
#define KX_KEEPER_PATCHES_H

#include <stddef.h>
#include <sys/types.h>

struct kx_guarded_patch {
	pid_t pid;
	unsigned long long start; /* of /proc/PID/stat: another process that gets the number later
				     is not touched */
};

struct kx_guarded_patches {
	struct kx_guarded_patch *items;
	size_t n;
};

/* Errors: -ESRCH, -ENOMEM. */
int kx_guarded_patches_add(struct kx_guarded_patches *g, pid_t pid);
void kx_guarded_patches_drop(struct kx_guarded_patches *g, pid_t pid);

/* Once for each: those that have ended or have no jumps any more are dropped. Returns how many
 * wait, for a debugger's end. */
size_t kx_guarded_patches_remove(struct kx_guarded_patches *g);

#endif
