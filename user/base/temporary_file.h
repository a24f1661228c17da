// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_TEMPORARY_FILE_H
#define KX_TEMPORARY_FILE_H

#include <stdint.h>

/*
 * An unlinked file in $TMPDIR (default /tmp), open for reading and writing: it is gone once its
 * descriptor is closed. Returns the descriptor, which the caller owns, or open(2)'s negative errno.
 */
int kx_temporary_file(void);

/*
 * Takes @bytes of room on the file system of the file @beside, until the returned descriptor is
 * closed. So what must be written at the end has its room even if the disk is full by then. Errors:
 * -ENOSPC, open(2)'s (not every file system has O_TMPFILE).
 */
int kx_reserve_room(const char *beside, uint64_t bytes);

#endif
