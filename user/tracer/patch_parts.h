// SPDX-License-Identifier: BSD-2-Clause
/* What is still there of the modules that areas have jumps in, by one reading of /proc/PID/maps: a removal does so while all threads are stopped. */
#ifndef KX_PATCH_PARTS_H
#define KX_PATCH_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tracer/patch_find.h"
#include "tracer/patch_write.h"

struct kx_patch_part {
	uint64_t from, to;
	bool opened; /* a part of a module that was made writable for the jumps, and still is */
};

struct kx_patch_parts {
	struct kx_patch_part *items; /* in order of address */
	size_t n, room;
};

/*
 * The parts of the modules of @finds that are there and executable, and private anonymous code: a program may have copied a module to such
 * memory in its place, with the jumps. All addresses are one part if an area does not say where its modules are. Errors: -ESRCH, -ENOMEM. In any case
 * free with kx_patch_parts_free.
 */
int kx_patch_parts_read(pid_t view, const struct kx_patch_finds *finds, struct kx_patch_parts *out);
void kx_patch_parts_free(struct kx_patch_parts *p);

/* Drops of the changes, which are in order of address, those in none of the parts; returns how many are left. */
size_t kx_patch_parts_keep(const struct kx_patch_parts *p, struct kx_patch_change *changes, size_t n);

#endif
