// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads XRay traces, kxray's and LLVM's own: FDR versions 1 to 5 and basic ("naive") mode versions
 * 1 to 3. Files that llvm-xray 14 and 19 load are loaded; files that they reject are rejected, with
 * offset and reason (compared with llvm/lib/XRay of 14.0.6 and 19.1.7, and by running both).
 *
 * A trace that is compressed with zstd (record --compress, or zstd itself) is decompressed into an unlinked
 * temporary file first, frames in parallel; offsets and sizes are those of the trace in it.
 *
 * The file is mapped. Opening it scans it once, checks every record and indexes its buffers. Memory
 * grows with buffers and threads, not with events; pages already read are released. Cursors then
 * decode the records.
 *
 * Order: a thread's records come in the order of its buffers in the file. (llvm-xray sorts buffers
 * by WallTime, with a comparator that shuffles more than 16 of them; writers emit them in order.)
 *
 * Not thread-safe: cursors of one file share its mapping. The file must not be truncated while it
 * is open (SIGBUS, as with any mapped file).
 */
#ifndef KX_FDR_READER_H
#define KX_FDR_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/fdr.h"

#define KX_FDR_READ_ARGS 8 /* CallArguments kept of one call; more are skipped */

struct kx_fdr_file;

struct kx_fdr_info {
	uint16_t version;
	uint16_t type; /* KX_FDR_TYPE_FDR or _NAIVE */
	bool constant_tsc, nonstop_tsc;
	bool truncated;	       /* the file ends inside a buffer; its complete records are read */
	bool damaged;	       /* only after kx_fdr_open_damaged */
	uint64_t tsc_hz;       /* ticks a second; 0: unknown */
	uint64_t buffer_size;  /* bytes; header field, informational */
	uint64_t file_size;    /* bytes; of a compressed file: of the trace in it */
	uint64_t truncated_at; /* offset of the first byte not read */
	uint64_t start_tsc;    /* earliest absolute clock of the file, ticks; 0 if it has none */
};

enum kx_record_kind {
	KX_RECORD_ENTRY, /* args: the CallArguments that follow */
	KX_RECORD_EXIT,
	KX_RECORD_TAIL_EXIT,
	KX_RECORD_CUSTOM, /* data, size */
	KX_RECORD_TYPED,  /* data, size, event_type */
	KX_RECORD_CPU,	  /* NewCPUId */
	KX_RECORD_WRAP,	  /* TSCWrap */
	KX_RECORD_BUFFER, /* a buffer's preamble: NewBuffer, WallTime, Pid */
	KX_RECORD_END,	  /* EndOfBuffer */
};

struct kx_fdr_record {
	uint8_t kind;  /* enum kx_record_kind */
	uint8_t nargs; /* entries: valid words in args */
	uint16_t cpu;
	uint16_t event_type; /* typed events */
	uint32_t func;
	uint32_t thread; /* index of the thread in the file, below kx_fdr_nthreads */
	int32_t tid, pid;
	uint64_t tsc;	   /* absolute ticks; 0 for KX_RECORD_BUFFER */
	uint64_t offset;   /* of the record in the file */
	uint64_t wall_sec; /* KX_RECORD_BUFFER */
	uint32_t wall_usec;
	uint32_t size;	     /* custom, typed: payload bytes */
	const uint8_t *data; /* borrowed from the file, until it is closed */
	uint64_t args[KX_FDR_READ_ARGS];
};

/*
 * Opens @path ("-": standard input). A pipe or device is copied, and a compressed file decompressed, to an
 * unlinked temporary file first. Errors: open(2)'s, -EBADMSG (not a trace, a version or byte order that cannot be read, or
 * damaged: with offset and reason), -ENOMEM. A truncated end is not an error: see info.truncated.
 */
int kx_fdr_open(const char *path, struct kx_fdr_file **out, struct kx_err *err);
/*
 * The same, but a damaged file opens with the records before the damage, and info.damaged is set. A
 * file cursor returns the error after the last record; thread cursors just end.
 */
int kx_fdr_open_damaged(const char *path, struct kx_fdr_file **out, struct kx_err *err);
void kx_fdr_close(struct kx_fdr_file *f);
const struct kx_fdr_info *kx_fdr_get_info(const struct kx_fdr_file *f);

/* Threads in the file, in order of their first buffer; one per pair of process and thread id. */
size_t kx_fdr_nthreads(const struct kx_fdr_file *f);
void kx_fdr_thread_ids(const struct kx_fdr_file *f, size_t thread, int32_t *pid, int32_t *tid);

/*
 * A cursor over one thread's records, or over the whole file in file order. Memory is a few
 * hundred bytes each. Free it before the file is closed. Errors: -ENOMEM.
 */
struct kx_fdr_cursor;
int kx_fdr_thread_cursor(struct kx_fdr_file *f, size_t thread, struct kx_fdr_cursor **out);
int kx_fdr_file_cursor(struct kx_fdr_file *f, struct kx_fdr_cursor **out);
void kx_fdr_cursor_free(struct kx_fdr_cursor *c);

/* 1 and the next record; 0 at the end; -EBADMSG, with offset and reason, where it is damaged. */
int kx_fdr_next(struct kx_fdr_cursor *c, struct kx_fdr_record *rec, struct kx_err *err);

/* A function record without arguments, as kx_fdr_next_calls decodes it. */
struct kx_call_record {
	uint64_t tsc; /* absolute ticks */
	uint32_t func;
	uint8_t kind; /* KX_RECORD_ENTRY, _EXIT or _TAIL_EXIT */
};

/*
 * The fast path: decodes up to @max consecutive function records of one buffer. All have the thread
 * and CPU of the record before them; *@thread is that thread's index. Returns their number; 0: call
 * kx_fdr_next (another kind of record follows, or the end).
 */
size_t kx_fdr_next_calls(struct kx_fdr_cursor *c, struct kx_call_record *out, size_t max,
			 uint32_t *thread);
/*
 * The same up to the end of the segment, but returns only the times of the first and the last
 * one.
 */
size_t kx_fdr_skip_calls(struct kx_fdr_cursor *c, uint64_t *first, uint64_t *last,
			 uint32_t *thread);

#endif
