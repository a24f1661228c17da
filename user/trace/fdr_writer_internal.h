// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inside the FDR writer, bottom up: compressed frames (fdr_pack.c), bytes into the file (fdr_out.c), records into a thread's buffer
 * (fdr_buffers.c), the threads of a file (fdr_writer.c).
 */
#ifndef KX_FDR_WRITER_INTERNAL_H
#define KX_FDR_WRITER_INTERNAL_H

#include <endian.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "trace/fdr.h"
#include "trace/fdr_pack.h"
#include "trace/fdr_writer.h"

struct kx_fdr_thread {
	/* what every record needs */
	uint8_t *pos, *end; /* both NULL while no buffer is open */
	uint64_t base;	    /* TSC that the next delta counts from */
	uint64_t newest;    /* TSC of the newest record */
	uint16_t cpu;
	uint32_t hits; /* function records in the open buffer, without added exits */

	bool started;  /* it has a buffer, in the file or open */
	bool has_wall; /* the next buffer's wall_sec and wall_usec must both be above these */
	int32_t pid, tid;
	uint8_t *buf;
	size_t capacity;
	size_t body;	   /* bytes of the preamble in the open buffer */
	char *note;	   /* custom event that comes first; NULL once written */
	uint64_t wall_sec; /* of the last buffer */
	uint32_t wall_usec;
	struct kx_fdr_writer *writer;
	struct kx_fdr_thread *next, **link; /* in order of creation */
};

/* Of ended threads: the newest wall clock of any whose ids hash to this slot. */
struct kx_fdr_ended {
	uint64_t wall_sec;
	uint32_t wall_usec;
	uint32_t any;
};

#define KX_FDR_ENDED_PLACES (1u << 14)

struct kx_fdr_writer {
	int fd;
	int error; /* the first one of write(2); sticks */
	struct kx_fdr_options options;
	size_t trailer; /* bytes kept free at a buffer's end */
	uint8_t *zeros; /* fill of version 1 */
	bool regular;	/* the file can be truncated and patched */
	off_t offset;	/* of the header in the file */
	uint64_t bytes;	/* of the trace: in the file, or in frames and the open group of @pack */
	struct kx_fdr_pack *pack; /* NULL: the file is not compressed */
	uint64_t packed_hits;	  /* with @pack: hits that are in frames */
	size_t placeholder; /* bytes of the buffer after the header that the first real one replaces */
	uint64_t nstarted;
	uint64_t hits; /* function records in the file, without added exits */
	size_t memory;
	struct kx_fdr_thread *first, **last; /* those that have not ended */
	struct kx_fdr_thread **table;	     /* open addressing by pid and tid */
	size_t table_size;		     /* a power of two */
	size_t nthreads;
	struct kx_fdr_ended *ended; /* KX_FDR_ENDED_PLACES of them */
};

static inline void kx_put16(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void kx_put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void kx_put64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

#endif
