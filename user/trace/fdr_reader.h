// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads XRay traces of any origin, kxray's and LLVM's own: FDR versions 1 to 5 and
 * basic ("naive") mode versions 1 to 3. What llvm-xray 14 and 19 load is loaded, what
 * they reject is rejected with the true reason (facts: llvm/lib/XRay of 14.0.6 and
 * 19.1.7, checked by running both).
 *
 * The file is mapped, not loaded. Opening it walks over it once, checks every record
 * and makes an index of its buffers; memory grows with buffers and threads, not with
 * events, and pages already read are given back. Records then come from cursors.
 *
 * Order: a thread's records come in the order of its buffers in the file. (llvm-xray
 * orders them by WallTime instead, with a comparator that shuffles more than 16
 * buffers; writers emit them in order.)
 *
 * Not thread-safe: cursors of one file share its mapping. The file must not be cut
 * shorter by somebody else while it is open (SIGBUS, as with any mapped file).
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
	uint16_t type;        /* KX_FDR_TYPE_FDR or _NAIVE */
	bool constant_tsc, nonstop_tsc;
	bool truncated;       /* the file ends inside a buffer; what is whole is read */
	bool damaged;         /* only after kx_fdr_open_damaged */
	uint64_t tsc_hz;      /* ticks a second; 0 if the file does not say */
	uint64_t buffer_size; /* bytes; header field, informational */
	uint64_t file_size;   /* bytes */
	uint64_t truncated_at; /* offset of the first byte not read */
	uint64_t start_tsc;   /* earliest absolute clock of the file, ticks; 0 if it has none */
};

enum kx_record_kind {
	KX_RECORD_ENTRY,  /* args: the CallArguments that follow */
	KX_RECORD_EXIT,
	KX_RECORD_TAIL_EXIT,
	KX_RECORD_CUSTOM, /* data, size */
	KX_RECORD_TYPED,  /* data, size, event_type */
	KX_RECORD_CPU,    /* NewCPUId */
	KX_RECORD_WRAP,   /* TSCWrap */
	KX_RECORD_BUFFER, /* a buffer's preamble: NewBuffer, WallTime, Pid */
	KX_RECORD_END,    /* EndOfBuffer */
};

struct kx_fdr_record {
	uint8_t kind;        /* enum kx_record_kind */
	uint8_t nargs;       /* entries: valid words in args */
	uint16_t cpu;
	uint16_t event_type; /* typed events */
	uint32_t func;
	uint32_t thread;     /* index of the thread in the file, below kx_fdr_nthreads */
	int32_t tid, pid;
	uint64_t tsc;        /* absolute ticks; 0 for KX_RECORD_BUFFER */
	uint64_t offset;     /* of the record in the file */
	uint64_t wall_sec;   /* KX_RECORD_BUFFER */
	uint32_t wall_usec;
	uint32_t size;       /* custom, typed: payload bytes */
	const uint8_t *data; /* borrowed from the file, until it is closed */
	uint64_t args[KX_FDR_READ_ARGS];
};

/*
 * Opens @path ("-" reads standard input; what is no regular file is spooled to an unlinked
 * temporary file first). Errors, with offset and true reason: open(2)'s, -EBADMSG (no trace, a
 * version or byte order that cannot be read, or damaged), -ENOMEM. A truncated tail is no error:
 * see info.truncated.
 */
int kx_fdr_open(const char *path, struct kx_fdr_file **out, struct kx_err *err);
/*
 * The same, but a damaged file opens with what stands before the damage and info.damaged;
 * a file cursor then returns the error after the last record, thread cursors just end.
 */
int kx_fdr_open_damaged(const char *path, struct kx_fdr_file **out, struct kx_err *err);
void kx_fdr_close(struct kx_fdr_file *f);
const struct kx_fdr_info *kx_fdr_get_info(const struct kx_fdr_file *f);

/* Threads in the file, in order of their first buffer; one per pair of process and thread id. */
size_t kx_fdr_nthreads(const struct kx_fdr_file *f);
void kx_fdr_thread_ids(const struct kx_fdr_file *f, size_t thread, int32_t *pid, int32_t *tid);

/*
 * A cursor over one thread's records, or over the whole file in file order. Memory is a few
 * hundred bytes each. To be freed before the file is closed. Errors: -ENOMEM.
 */
struct kx_fdr_cursor;
int kx_fdr_thread_cursor(struct kx_fdr_file *f, size_t thread, struct kx_fdr_cursor **out);
int kx_fdr_file_cursor(struct kx_fdr_file *f, struct kx_fdr_cursor **out);
void kx_fdr_cursor_free(struct kx_fdr_cursor *c);

/* 1 and the next record; 0 at the end; -EBADMSG, with offset and reason, where it is damaged. */
int kx_fdr_next(struct kx_fdr_cursor *c, struct kx_fdr_record *rec, struct kx_err *err);

/* A function record without arguments, as kx_fdr_next_calls decodes it. */
struct kx_call_record {
	uint64_t tsc;  /* absolute ticks */
	uint32_t func;
	uint8_t kind;  /* KX_RECORD_ENTRY, _EXIT or _TAIL_EXIT */
};

/*
 * The fast path: decodes up to @max function records that follow in a row in one buffer, all of
 * the thread and CPU of the record before them (*@thread is that thread's index). Returns how
 * many; 0 means that kx_fdr_next must be asked (something else follows, or the end).
 */
size_t kx_fdr_next_calls(struct kx_fdr_cursor *c, struct kx_call_record *out, size_t max,
			 uint32_t *thread);
/* The same as far as the segment goes, but tells only the first and the last one's time. */
size_t kx_fdr_skip_calls(struct kx_fdr_cursor *c, uint64_t *first, uint64_t *last,
			 uint32_t *thread);

#endif
