// SPDX-License-Identifier: BSD-2-Clause
/* Inside the FDR reader: the mapped file and the index of its buffers. */
#ifndef KX_FDR_INDEX_H
#define KX_FDR_INDEX_H

#include <string.h>

#include "trace/fdr_reader.h"

#define KX_FDR_NO_SEGMENT UINT32_MAX
#define KX_FDR_NAIVE_SIZE 32 /* bytes of a basic mode record */

/*
 * A piece of a buffer without anything foreign in it: no BufferExtents, no fill. A buffer is
 * one segment, or several where it is interrupted or very long; then all but the first are
 * continuations and go on with the decoder's state.
 */
struct kx_fdr_segment {
	uint64_t begin, end; /* offsets in the file */
	uint32_t next;       /* next segment of the same thread, or KX_FDR_NO_SEGMENT */
	uint32_t thread : 31;
	uint32_t continued : 1;
};

struct kx_fdr_thread_index {
	int32_t pid, tid;
	uint32_t first, last; /* segments */
};

struct kx_fdr_file {
	struct kx_fdr_info info;
	const uint8_t *data; /* the whole file, mapped */
	uint64_t resident;   /* bytes of it that may be resident now, roughly */
	struct kx_fdr_segment *segments;
	size_t nsegments, segments_room;
	struct kx_fdr_thread_index *threads;
	size_t nthreads, threads_room;
	uint32_t *thread_hash; /* thread index + 1 by (pid, tid), open addressing */
	size_t thread_hash_size;
	uint64_t naive_end;    /* basic mode: end of the whole, good records */
	struct kx_err damage;  /* valid if info.damaged */
	char *name;            /* for messages */
};

static inline uint16_t kx_get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t kx_get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t kx_get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * Walks over the mapped file, checks it, and fills segments and threads. Returns 0, -ENOMEM, or
 * -EBADMSG with offset and reason; the index then holds what stands before the damage.
 */
int kx_fdr_index(struct kx_fdr_file *f, struct kx_err *err);
/* The same for basic mode, which has no buffers: only threads. */
int kx_fdr_index_naive(struct kx_fdr_file *f, struct kx_err *err);

/* Index of thread (@pid, @tid), made if new; or -ENOMEM. */
int64_t kx_fdr_intern_thread(struct kx_fdr_file *f, int32_t pid, int32_t tid);

/*
 * To be called before [@begin, @end) of the mapping is read: gives back pages read earlier once
 * there are many, so that resident memory does not grow with the file.
 */
void kx_fdr_touch(struct kx_fdr_file *f, uint64_t begin, uint64_t end);

/*
 * Checks a basic mode record at @offset (a whole one). @before is the function record that an
 * argument record must belong to, NULL if there is none. Returns 0 or -EBADMSG.
 */
int kx_fdr_check_naive(const struct kx_fdr_file *f, uint64_t offset, const uint8_t *before,
		       struct kx_err *err);

#endif
