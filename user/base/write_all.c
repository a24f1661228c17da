// SPDX-License-Identifier: BSD-2-Clause
#include "base/write_all.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

int kx_write_all(int fd, struct iovec *iov, int n)
{
	for (;;) {
		ssize_t done;

		for (; n && !iov->iov_len; n--)
			iov++;
		if (!n)
			return 0;
		done = writev(fd, iov, n);
		if (done < 0 && errno == EAGAIN) {
			struct pollfd pfd = { .fd = fd, .events = POLLOUT };

			(void)poll(&pfd, 1, -1);
			continue;
		}
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		for (; n && (size_t)done >= iov->iov_len; n--)
			done -= (ssize_t)iov++->iov_len;
		if (n) {
			iov->iov_base = (uint8_t *)iov->iov_base + done;
			iov->iov_len -= (size_t)done;
		}
	}
}
