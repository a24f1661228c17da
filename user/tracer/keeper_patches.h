// SPDX-License-Identifier: BSD-2-Clause
/* Processes out of which the keeper takes kxray's jumps when its owner has ended. */
#ifndef KX_KEEPER_PATCHES_H
#define KX_KEEPER_PATCHES_H

#include <stddef.h>
#include <sys/types.h>

#include "tracer/patch_family.h"

struct kx_guarded_patch {
	pid_t pid;
	unsigned long long start; /* of /proc/PID/stat: another process that gets the number later
				     is not touched */
	unsigned tries;
	double next; /* CLOCK_MONOTONIC, seconds: not tried again before */
	struct kx_patch_family family; /* inode 0: there is none */
};

struct kx_guarded_patches {
	struct kx_guarded_patch *items;
	size_t n;
};

/* Errors: -ESRCH, -ENOMEM. */
int kx_guarded_patches_add(struct kx_guarded_patches *g, pid_t pid);
/* Process @pid shares them: all that do are meant. Errors: -ESRCH: it is not guarded. */
int kx_guarded_patches_share(struct kx_guarded_patches *g, pid_t pid, const struct kx_patch_family *family);
void kx_guarded_patches_drop(struct kx_guarded_patches *g, pid_t pid);

/*
 * Drops those that have ended, and tries each whose time has come; those that have no jumps any
 * more are dropped. What is in the way (a tracer, a thread in vfork that cannot be stopped) may
 * last as long as the process, or until it is thawed: it is tried at once for a second, then each second, after a minute
 * each 10 s, since each try may stop its threads. Where only memory stays mapped, 10 times at most.
 * Returns how many wait. To be called every KX_PATCHES_MS.
 */
#define KX_PATCHES_MS 200
size_t kx_guarded_patches_remove(struct kx_guarded_patches *g);

#endif
