// SPDX-License-Identifier: BSD-2-Clause
/* Inside the FDR reader: a trace that is mapped into memory, and the numbers in it. */
#ifndef KX_FDR_FILE_H
#define KX_FDR_FILE_H

#include <string.h>

#include "base/pair_map.h"
#include "trace/fdr_reader.h"

#define KX_FDR_NO_SEGMENT UINT32_MAX

/*
 * A contiguous part of a buffer that holds only records to decode: no BufferExtents, no padding. A
 * buffer is one segment, or several if it is interrupted or very long; all but the first continue
 * with the decoder's state.
 */
struct kx_fdr_segment {
	uint64_t begin, end; /* offsets in the file */
	uint32_t next;	     /* next segment of the same thread, or KX_FDR_NO_SEGMENT */
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
	_Atomic uint64_t resident; /* bytes of it that may be resident, roughly; several threads may read */
	struct kx_fdr_segment *segments;
	size_t nsegments, segments_room;
	struct kx_fdr_thread_index *threads;
	size_t nthreads, threads_room;
	struct kx_pair_map thread_map; /* (pid, tid) to thread */
	uint64_t naive_end;	       /* basic mode: end of the complete, valid records */
	struct kx_err damage;	       /* valid if info.damaged or packing_damaged */
	bool cut;		       /* compressed, and the last frame is not whole */
	bool packing_damaged;	       /* compressed, and damaged after what is mapped */
	char *name;		       /* for messages */
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
 * Maps @path ("-": standard input) into @f, whose name is set. A pipe or device is copied to an
 * unlinked temporary file first, and a compressed file is decompressed into one. Errors: open(2)'s, -EISDIR, -EBADMSG (empty), -ENOMEM.
 */
int kx_fdr_map(struct kx_fdr_file *f, const char *path, struct kx_err *err);
void kx_fdr_unmap(struct kx_fdr_file *f);

/*
 * Call it before reading [@begin, @end) of the mapping: releases pages read earlier once there are
 * many, so that resident memory does not grow with the file.
 */
void kx_fdr_touch(struct kx_fdr_file *f, uint64_t begin, uint64_t end);

#endif
