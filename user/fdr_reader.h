// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads FDR files of any version (1 to 5) and origin: kxray's and LLVM's own.
 * A file is mapped, not loaded; opening it makes an index of its buffers, and
 * each thread is then a stream of records in order of its buffers.
 */
#ifndef KX_FDR_READER_H
#define KX_FDR_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "fdr.h"

struct kx_fdr_file;

struct kx_fdr_info {
	uint16_t version;
	uint16_t type;        /* KX_FDR_TYPE_FDR or _NAIVE */
	bool constant_tsc, nonstop_tsc;
	uint64_t tsc_hz;      /* 0 if the file does not say */
	uint64_t buffer_size; /* header field, informational */
	uint64_t file_size;   /* bytes */
	bool truncated;       /* the file ends inside a buffer; what is whole is read */
	uint64_t truncated_at; /* offset of the first byte not read */
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

struct kx_record {
	uint8_t kind;        /* enum kx_record_kind */
	uint8_t nargs;       /* entries: arguments present, at most KX_FDR_READ_ARGS kept */
	uint16_t cpu;
	uint16_t event_type; /* typed events */
	uint32_t func;
	int32_t tid, pid;
	uint64_t tsc;        /* absolute ticks */
	uint64_t offset;     /* of the record in the file */
	uint64_t wall_sec;   /* KX_RECORD_BUFFER */
	uint32_t wall_usec;
	uint32_t size;       /* custom, typed: payload bytes */
	const uint8_t *data; /* borrowed from the file */
	uint64_t args[8];
};

/*
 * Opens @path ("-" reads standard input whole). Errors, with offset and true reason: -ENOENT,
 * -EBADMSG (not an FDR trace, or damaged). A truncated tail is no error: see info.truncated.
 */
int kx_fdr_open(const char *path, struct kx_fdr_file **out, struct kx_err *err);
void kx_fdr_close(struct kx_fdr_file *f);
const struct kx_fdr_info *kx_fdr_info(const struct kx_fdr_file *f);

/* Threads in the file, in order of their first buffer. */
size_t kx_fdr_nthreads(const struct kx_fdr_file *f);

/* A cursor over one thread's records, or over the whole file in file order. */
struct kx_fdr_cursor;
int kx_fdr_thread_cursor(struct kx_fdr_file *f, size_t thread, struct kx_fdr_cursor **out);
int kx_fdr_file_cursor(struct kx_fdr_file *f, struct kx_fdr_cursor **out);
/* 1 and the next record, 0 at the end, -EBADMSG with offset and reason where the file is damaged. */
int kx_fdr_next(struct kx_fdr_cursor *c, struct kx_record *rec, struct kx_err *err);
void kx_fdr_cursor_free(struct kx_fdr_cursor *c);

#endif
