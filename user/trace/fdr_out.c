// SPDX-License-Identifier: BSD-2-Clause
#include "trace/fdr_out.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/write_all.h"

void kx_fdr_drop_buffer(struct kx_fdr_thread *t)
{
	t->writer->memory -= t->capacity;
	free(t->buf);
	t->buf = t->pos = t->end = NULL;
	t->capacity = 0;
}

uint64_t kx_fdr_file_bytes(const struct kx_fdr_writer *w)
{
	return w->pack ? kx_fdr_pack_bytes(w->pack) : w->bytes;
}

static int truncate_file(const struct kx_fdr_writer *w)
{
	off_t end = w->offset + (off_t)kx_fdr_file_bytes(w);

	return ftruncate(w->fd, end) || lseek(w->fd, end, SEEK_SET) < 0 ? -errno : 0;
}

static int fail(struct kx_fdr_writer *w, int error)
{
	w->error = error;
	/* what was in the open group of a compressed file is not in the file */
	if (w->pack)
		w->hits = w->packed_hits;
	/* If it cannot be truncated, readers stop at the incomplete buffer. */
	if (w->regular)
		(void)truncate_file(w);
	for (struct kx_fdr_thread *t = w->first; t; t = t->next)
		kx_fdr_drop_buffer(t);
	return error;
}

/* Takes the buffer that kx_fdr_writer_new has written out of the file. */
static void remove_placeholder(struct kx_fdr_writer *w)
{
	int r;

	w->bytes -= w->placeholder;
	w->placeholder = 0;
	if (w->pack)
		kx_fdr_pack_reset(w->pack);
	r = truncate_file(w);
	if (r)
		fail(w, r);
}

int kx_fdr_end_group(struct kx_fdr_writer *w)
{
	int r = w->pack && !w->error ? kx_fdr_pack_end_group(w->pack) : w->error;

	if (r)
		return fail(w, r);
	w->packed_hits = w->hits;
	return 0;
}

static int write_packed(struct kx_fdr_writer *w, const struct iovec *iov, int n, uint64_t total)
{
	int r;

	if (!w->bytes)
		return kx_fdr_pack_header(w->pack, iov);
	r = kx_fdr_pack_is_full(w->pack, total) ? kx_fdr_end_group(w) : 0;
	return r ? r : kx_fdr_pack_add(w->pack, iov, n);
}

int kx_fdr_write(struct kx_fdr_writer *w, struct iovec *iov, int n)
{
	uint64_t total = 0;
	int r;

	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	if (w->placeholder)
		remove_placeholder(w);
	r = w->pack ? write_packed(w, iov, n, total) : kx_write_all(w->fd, iov, n);
	if (r)
		return w->error ? r : fail(w, r);
	w->bytes += total;
	return 0;
}
