// SPDX-License-Identifier: BSD-2-Clause
#include "trace/fdr_segments.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

int64_t kx_fdr_intern_thread(struct kx_fdr_file *f, int32_t pid, int32_t tid)
{
	uint32_t index;
	int r;

	if (f->nthreads >= INT32_MAX || KX_ARRAY_RESERVE(f->threads, f->threads_room, f->nthreads))
		return -ENOMEM;
	r = kx_pair_index(&f->thread_map, (uint32_t)pid, (uint32_t)tid, &index);
	if (r <= 0)
		return r < 0 ? r : (int64_t)index;
	f->threads[f->nthreads++] =
		(struct kx_fdr_thread_index){ pid, tid, KX_FDR_NO_SEGMENT, KX_FDR_NO_SEGMENT };
	return index;
}

int kx_fdr_add_segment(struct kx_fdr_file *f, uint64_t begin, uint64_t end, bool continued)
{
	if (f->nsegments >= KX_FDR_NO_SEGMENT ||
	    KX_ARRAY_RESERVE(f->segments, f->segments_room, f->nsegments))
		return -ENOMEM;
	f->segments[f->nsegments++] = (struct kx_fdr_segment){
		.begin = begin, .end = end, .next = KX_FDR_NO_SEGMENT, .continued = continued
	};
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
