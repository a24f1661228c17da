// SPDX-License-Identifier: BSD-2-Clause
/*
 * The dynamic linkers of processes that join a recording: each reports libraries that are loaded later
 * (attach/dlopen_watch.h), by one probe for all processes or by one for each process.
 */
#ifndef KX_LINKERS_H
#define KX_LINKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/dlopen_watch.h"
#include "binary/modules.h"
#include "record/notice.h"
#include "tracer/tracer.h"

#define KX_MAX_LINKERS 32

struct kx_linker {
	uint64_t device, inode;
	struct kx_linker_hook hook;
	bool usable;
};

struct kx_linkers {
	struct kx_tracer *tracer;	  /* borrowed, as notices */
	const struct kx_notices *notices; /* what cannot be watched is said once per linker */
	struct kx_linker items[KX_MAX_LINKERS];
	size_t count;
};

/* Who is watched: one process, or all. Zeroed at first. */
struct kx_linkers_watched {
	struct kx_links links;
	uint32_t which; /* a bit for each of items */
};

/*
 * Puts probes on the linkers among @mods that @w does not have yet, for process @pid (0: all). True if all report
 * what they load from now on; *@added: some only from now on.
 */
bool kx_linkers_watch(struct kx_linkers *l, const struct kx_modules *mods, pid_t pid,
		      struct kx_linkers_watched *w, bool *added);
/* The same for the linkers that another process has probes on. Errors: those of kx_uprobe_link. */
int kx_linkers_inherit(struct kx_linkers *l, const struct kx_linkers_watched *parent, pid_t pid,
		       struct kx_linkers_watched *w);
void kx_linkers_free(struct kx_linkers *l);

#endif
