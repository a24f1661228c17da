// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_TEMPORARY_FILE_H
#define KX_TEMPORARY_FILE_H

/*
 * An unlinked file in $TMPDIR (default /tmp), open for reading and writing: it is gone once its
 * descriptor is closed. Returns the descriptor, which the caller owns, or open(2)'s negative errno.
 */
int kx_temporary_file(void);

#endif
