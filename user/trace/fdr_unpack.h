// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inside the FDR reader: traces that are compressed with zstd, by fdr_pack.c or by any other program.
 * The index and the cursors read buffers of one thread from all over the file, so the trace is
 * decompressed once, into an unlinked temporary file, with as many threads as there are CPUs (8 at most).
 *
 * The frames themselves say where they end and what size is in them, so there is no table of them:
 * a file whose recorder was killed is read like any other.
 */
#ifndef KX_FDR_UNPACK_H
#define KX_FDR_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct kx_fdr_unpacked {
	int fd;	       /* of the temporary file; the caller closes it */
	uint64_t size; /* bytes of the trace in it */
	bool cut;      /* the file ends inside a frame: what is whole of it is there */
	bool damaged;  /* only the frames before a damaged one are there, and @damage is set */
	struct kx_err damage;
};

/* Whether the regular file @fd begins with a frame of zstd. */
bool kx_fdr_is_packed(int fd);

/*
 * Decompresses the regular file @fd of @size bytes, which the caller keeps; @name is for messages. Memory: 1 MiB
 * for each thread, and what zstd needs for frames with a window (up to 128 MiB). Errors: -ENOMEM,
 * those of mmap(2) and of writing the temporary file.
 */
int kx_fdr_unpack(int fd, uint64_t size, const char *name, struct kx_fdr_unpacked *out,
		  struct kx_err *err);

#endif
