// SPDX-License-Identifier: BSD-2-Clause
/* What any kxray has mapped into a process, found in /proc/PID/maps and checked: whoever wrote it,
 * nothing of it leads out of the process. */
#ifndef KX_PATCH_FIND_H
#define KX_PATCH_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tracer/patch_area.h"
#include "tracer/remote_threads.h"

/* A mapping of the process. */
struct kx_patch_segment {
	uint64_t from, to;
	bool writable, executable;
	enum kx_patch_segment_kind {
		KX_SEGMENT_SHARED, /* anonymous shared memory */
		KX_SEGMENT_FILE,
		KX_SEGMENT_PLAIN, /* no file, no name */
		KX_SEGMENT_OTHER,
	} kind;
};

struct kx_patch_found {
	struct kx_patch_table *table; /* a copy, with its sites */
	bool has_head;		      /* the page is there; a forked child's is empty, unless */
	bool head_is_shared;	      /* with its children */
	bool has_far, has_rings;
};

struct kx_patch_finds {
	struct kx_patch_found *items;
	size_t n;
	struct kx_remote_range
		*rings; /* that no table names: a recorder was killed before it wrote one */
	size_t nrings;
	struct kx_patch_segment *segments; /* in order of address */
	size_t nsegments, room;
};

/* @mem: /proc/PID/mem. Errors: -ESRCH, -ENOMEM. In any case free with kx_patch_finds_free. */
int kx_patch_find(pid_t pid, int mem, struct kx_patch_finds *out);
void kx_patch_finds_free(struct kx_patch_finds *f);

#endif
