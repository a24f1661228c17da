// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/perfetto/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/temporary_file.h"
#include "base/write_all.h"

#define BUFFER 2048 /* records */

struct kx_spool_run {
	uint64_t at, end; /* numbers of records */
};

static int flush(struct kx_spool *s)
{
	struct iovec iov = { s->buffer, s->nbuffer * sizeof(*s->buffer) };
	int r = kx_write_all(s->fd, &iov, 1);

	s->nbuffer = 0;
	return r;
}

static int begin(struct kx_spool *s)
{
	s->buffer = malloc(BUFFER * sizeof(*s->buffer));
	if (!s->buffer)
		return -ENOMEM;
	s->fd = kx_temporary_file();
	return s->fd < 0 ? s->fd : 0;
}

int kx_spool_add(struct kx_spool *s, const struct kx_spooled *record)
{
	int r = s->buffer ? 0 : begin(s);

	if (!r && s->nbuffer == BUFFER)
		r = flush(s);
	if (r)
		return r;
	if (!s->nruns || s->thread != record->thread) {
		if (KX_ARRAY_RESERVE(s->runs, s->room, s->nruns))
			return -ENOMEM;
		s->runs[s->nruns++] = (struct kx_spool_run){ s->count, s->count };
		s->thread = record->thread;
		s->ns = 0;
	}
	s->ns = record->ns > s->ns ? record->ns : s->ns;
	s->buffer[s->nbuffer] = *record;
	s->buffer[s->nbuffer++].ns = s->ns;
	s->runs[s->nruns - 1].end = ++s->count;
	return 0;
}

static bool is_before(const struct kx_spool *s, const struct kx_spool_run *a,
		      const struct kx_spool_run *b)
{
	const struct kx_spooled *x = &s->mapped[a->at], *y = &s->mapped[b->at];

	return x->ns != y->ns ? x->ns < y->ns : a->at < b->at;
}

static void sift_down(struct kx_spool *s, size_t at)
{
	struct kx_spool_run moving = s->heap[at];

	for (size_t child; (child = 2 * at + 1) < s->nheap; at = child) {
		if (child + 1 < s->nheap && is_before(s, &s->heap[child + 1], &s->heap[child]))
			child++;
		if (!is_before(s, &s->heap[child], &moving))
			break;
		s->heap[at] = s->heap[child];
	}
	s->heap[at] = moving;
}

int kx_spool_rewind(struct kx_spool *s)
{
	void *mapped;
	int r;

	if (!s->count)
		return 0;
	r = flush(s);
	if (r)
		return r;
	mapped = mmap(NULL, s->count * sizeof(*s->buffer), PROT_READ, MAP_PRIVATE, s->fd, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	s->mapped = mapped;
	s->heap = s->runs;
	s->nheap = s->nruns;
	for (size_t i = s->nheap / 2; i--;)
		sift_down(s, i);
	return 0;
}

const struct kx_spooled *kx_spool_next(struct kx_spool *s)
{
	const struct kx_spooled *record;

	if (!s->nheap)
		return NULL;
	record = &s->mapped[s->heap[0].at++];
	if (s->heap[0].at == s->heap[0].end)
		s->heap[0] = s->heap[--s->nheap];
	if (s->nheap)
		sift_down(s, 0);
	return record;
}

const struct kx_spooled *kx_spool_after(const struct kx_spool *s, const struct kx_spooled *record)
{
	const struct kx_spooled *after = record + 1;

	return after < s->mapped + s->count && after->thread == record->thread ? after : NULL;
}

void kx_spool_free(struct kx_spool *s)
{
	if (s->mapped)
		munmap((void *)(uintptr_t)s->mapped, s->count * sizeof(*s->buffer));
	if (s->fd >= 0)
		close(s->fd);
	free(s->runs);
	free(s->buffer);
}
