// SPDX-License-Identifier: BSD-2-Clause
#include "trace/fdr_out.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

void kx_fdr_drop_buffer(struct kx_fdr_thread *t)
{
	t->writer->memory -= t->capacity;
	free(t->buf);
	t->buf = t->pos = t->end = NULL;
	t->capacity = 0;
}

static int fail(struct kx_fdr_writer *w, int error)
{
	w->error = error;
	/* If it cannot be truncated, readers stop at the incomplete buffer. */
	if (w->regular && ftruncate(w->fd, w->offset + (off_t)w->bytes) == 0)
		(void)lseek(w->fd, w->offset + (off_t)w->bytes, SEEK_SET);
	for (struct kx_fdr_thread *t = w->first; t; t = t->next)
		kx_fdr_drop_buffer(t);
	return error;
}

void kx_fdr_remove_placeholder(struct kx_fdr_writer *w)
{
	w->bytes -= w->placeholder;
	w->placeholder = 0;
	if (ftruncate(w->fd, w->offset + (off_t)w->bytes) ||
	    lseek(w->fd, w->offset + (off_t)w->bytes, SEEK_SET) < 0)
		fail(w, -errno);
}

int kx_fdr_write(struct kx_fdr_writer *w, struct iovec *iov, int n)
{
	uint64_t total = 0;

	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	if (w->placeholder)
		kx_fdr_remove_placeholder(w);
	while (n) {
		ssize_t done = writev(w->fd, iov, n);

		if (done < 0 && errno == EAGAIN) {
			struct pollfd pfd = { .fd = w->fd, .events = POLLOUT };

			(void)poll(&pfd, 1, -1);
			continue;
		}
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return fail(w, done < 0 ? -errno : -EIO);
		while (n && (size_t)done >= iov->iov_len) {
			done -= (ssize_t)iov->iov_len;
			iov++;
			n--;
		}
		if (n) {
			iov->iov_base = (uint8_t *)iov->iov_base + done;
			iov->iov_len -= (size_t)done;
		}
	}
	w->bytes += total;
	return 0;
}
