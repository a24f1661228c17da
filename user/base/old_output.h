// SPDX-License-Identifier: BSD-2-Clause
/*
 * The trace that an output replaces stays under another name: trace.xray becomes trace.xray.old,
 * with its map trace.xray.old.map, where readers look for it; a compressed one becomes
 * trace.xray.old.zst. One generation: what had these names before is removed.
 */
#ifndef KX_OLD_OUTPUT_H
#define KX_OLD_OUTPUT_H

#include "base/err.h"

/* The name that @path gets, allocated: ".old" before a last ".zst" or ".map", or at the end. NULL
 * on -ENOMEM. */
char *kx_old_output_path(const char *path);

/*
 * Keeps the file @path, its map, and the trace that shares the map: the same one with or without
 * .zst. To be called before the map and the output are replaced; until then @path remains readable
 * under both names, where the file system has hard links. Of a symbolic link the file is kept, and
 * a link to it. An empty file is none. *@kept: the new name of @path or of the trace that shares
 * its map, allocated; NULL if there was neither. Errors: link(2)'s and rename(2)'s, after which
 * nothing is lost; -ENOMEM.
 */
int kx_old_output_keep(const char *path, char **kept, struct kx_err *err);

#endif
