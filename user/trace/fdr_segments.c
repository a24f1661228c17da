// SPDX-License-Identifier: BSD-2-Clause
#include "trace/fdr_segments.h"

#include <errno.h>
#include <stdlib.h>

/* Grows an array of @size-byte items to hold one more. */
static void *make_room(void *items, size_t count, size_t *room, size_t size)
{
	size_t wanted = *room ? *room + *room / 2 : 64;
	void *grown;

	if (count < *room)
		return items;
	grown = reallocarray(items, wanted, size);
	if (grown)
		*room = wanted;
	return grown;
}

int64_t kx_fdr_intern_thread(struct kx_fdr_file *f, int32_t pid, int32_t tid)
{
	struct kx_fdr_thread_index *threads;
	uint32_t index;
	int r;

	threads = f->nthreads < INT32_MAX ?
			  make_room(f->threads, f->nthreads, &f->threads_room, sizeof(*threads)) : NULL;
	if (!threads)
		return -ENOMEM;
	f->threads = threads;
	r = kx_pair_index(&f->thread_map, (uint32_t)pid, (uint32_t)tid, &index);
	if (r <= 0)
		return r < 0 ? r : (int64_t)index;
	threads[f->nthreads++] = (struct kx_fdr_thread_index){
		pid, tid, KX_FDR_NO_SEGMENT, KX_FDR_NO_SEGMENT };
	return index;
}

int kx_fdr_add_segment(struct kx_fdr_file *f, uint64_t begin, uint64_t end, bool continued)
{
	struct kx_fdr_segment *segments;

	segments = f->nsegments < KX_FDR_NO_SEGMENT ?
			   make_room(f->segments, f->nsegments, &f->segments_room,
				     sizeof(*segments)) : NULL;
	if (!segments)
		return -ENOMEM;
	f->segments = segments;
	segments[f->nsegments++] = (struct kx_fdr_segment){
		.begin = begin, .end = end, .next = KX_FDR_NO_SEGMENT, .continued = continued };
	return 0;
}

void kx_fdr_link_segment(struct kx_fdr_file *f, size_t index, uint32_t thread)
{
	struct kx_fdr_thread_index *t = &f->threads[thread];

	f->segments[index].thread = thread & 0x7fffffff;
	if (t->first == KX_FDR_NO_SEGMENT)
		t->first = (uint32_t)index;
	else
		f->segments[t->last].next = (uint32_t)index;
	t->last = (uint32_t)index;
}

void kx_fdr_segments_free(struct kx_fdr_file *f)
{
	free(f->segments);
	free(f->threads);
	kx_pair_map_free(&f->thread_map);
}
