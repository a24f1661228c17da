// SPDX-License-Identifier: BSD-2-Clause
/*
 * A tar archive (POSIX.1-1988 ustar) whose members are written in place: a member's size is not
 * known before its end, so its header is written last, over a blank one. Libraries for archives
 * want the size first, or the member in a file of its own, which would be twice the writing.
 */
#ifndef KX_TAR_H
#define KX_TAR_H

#include <stdint.h>
#include <sys/types.h>

#define KX_TAR_NAME 100 /* bytes of a name, with NUL: Perfetto's page takes no more */

struct kx_tar {
	int fd;		   /* a regular file, at its end */
	uint64_t modified; /* time of all members, s */
	off_t header;	   /* of the member that is open */
};

/* The member is what is written to tar->fd between the two calls; @name is shorter than
 * KX_TAR_NAME. Errors: write(2)'s. */
int kx_tar_begin(struct kx_tar *tar);
int kx_tar_end(struct kx_tar *tar, const char *name);
/* After the last member. Errors: write(2)'s. */
int kx_tar_finish(struct kx_tar *tar);

#endif
