// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_WRITE_ALL_H
#define KX_WRITE_ALL_H

#include <sys/uio.h>

/*
 * Writes all bytes of the @n items of @iov, which it changes, to @fd; waits where a pipe is full. Returns
 * 0, or writev(2)'s negative errno after some of the bytes.
 */
int kx_write_all(int fd, struct iovec *iov, int n);

#endif
