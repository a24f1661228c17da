// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes FDR files that llvm-xray 14 to 19 load: any version from 1 to 5, many
 * threads interleaved in buffers of their own. The writer knows the format and
 * nothing of where events come from; it does not check that calls balance (see
 * callstack.h) but it does keep each thread's time from going back.
 */
#ifndef KX_FDR_WRITER_H
#define KX_FDR_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/notes.h"

struct kx_fdr_writer;
struct kx_fdr_thread;

struct kx_fdr_options {
	int version;          /* 1 to 5; 0 means the newest */
	uint32_t buffer_size; /* bytes of a full buffer, a multiple of 8 from 1 KiB to 256 MiB;
			       * 0 means 64 KiB. Version 1: the size of every buffer. */
	uint64_t tsc_hz;      /* ticks a second; header field cycle_frequency; 0: not known */
	bool constant_tsc;
	bool nonstop_tsc;
	uint64_t start_tsc;   /* T0 >= 1, no event is older: first record of every thread */
	uint64_t wall_sec;    /* CLOCK_MONOTONIC at T0: the base of WallTime records */
	uint32_t wall_usec;
};

/*
 * Starts a file on @fd, which must be empty, stays owned by the caller and may
 * be a pipe (the caller ignores SIGPIPE). Writes the header at once. *@out is
 * freed by kx_fdr_writer_free.
 * Errors: -EINVAL for an option out of range, -ENOMEM, else write(2)'s.
 */
int kx_fdr_writer_new(int fd, const struct kx_fdr_options *options,
		      struct kx_fdr_writer **out, struct kx_err *err);

/*
 * The stream of one thread; created on first use, then the same one until kx_fdr_thread_end. What
 * is known of the thread goes into its first custom event, at start_tsc: a later one of that kind
 * says that another thread has got the same ids. Owned by the writer. NULL only if memory ran out.
 */
struct kx_fdr_thread *kx_fdr_writer_thread_of(struct kx_fdr_writer *w,
					      const struct kx_fdr_identity *who);
/* The same for a thread of which no other ids are known. */
struct kx_fdr_thread *kx_fdr_writer_thread(struct kx_fdr_writer *w, int32_t pid, int32_t tid,
					   const char *name, const char *process);

/*
 * One record each, @tsc in ticks; a @tsc older than the thread's newest is
 * raised to it. A CPU other than the thread's last one puts a NewCPUId first;
 * kx_fdr_cpu is such a change at a time of its own. A custom event is of the
 * thread's last CPU.
 * Errors: -EINVAL for @func over KX_FDR_MAX_FUNC, @nargs over 8, @size not 1 to 4096
 * (version 1: -EMSGSIZE where the buffer is too small for the payload);
 * -ENOMEM; else those of write(2) when a full buffer goes
 * out: the writer then cuts the file at its last whole buffer (if it can be cut),
 * drops what it holds, and repeats the error at every call.
 */
int kx_fdr_entry(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func,
		 const uint64_t *args, unsigned nargs);
int kx_fdr_exit(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func, bool tail);
/* An exit that was no probe hit: it closes a call whose own exit will not come. */
int kx_fdr_added_exit(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func);
int kx_fdr_cpu(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu);
/* Version 1 pads the payload with spaces to a multiple of 8 bytes. */
int kx_fdr_custom(struct kx_fdr_thread *t, uint64_t tsc, const void *payload, size_t size);
/* The custom event of a note. Errors: those of kx_note_format, too. */
int kx_fdr_note(struct kx_fdr_thread *t, uint64_t tsc, const struct kx_note *note);

/*
 * Closes the thread's open buffer and frees the thread: @t is gone, whatever is returned. What it
 * takes to give its ids to another thread is kept in memory of a fixed size.
 */
int kx_fdr_thread_end(struct kx_fdr_thread *t);

/*
 * Writes out every buffer that holds something, so that the file is whole up to here,
 * and gives back their memory.
 */
int kx_fdr_flush(struct kx_fdr_writer *w, struct kx_err *err);

/*
 * Flushes and, if the file is seekable, corrects the header's frequency to
 * @tsc_hz (0 leaves it). A trace with no thread at all gets one buffer with a
 * session note, because llvm-xray rejects a file with a header only.
 */
int kx_fdr_finish(struct kx_fdr_writer *w, uint64_t tsc_hz, struct kx_err *err);

/* Function records that are in the file (not those in open buffers), without added exits. */
uint64_t kx_fdr_writer_hits(const struct kx_fdr_writer *w);

/* Bytes in the file so far; threads that have a record. */
uint64_t kx_fdr_writer_bytes(const struct kx_fdr_writer *w);
uint64_t kx_fdr_writer_threads(const struct kx_fdr_writer *w);
/* Threads that have not ended; all that the writer's memory grows with. */
size_t kx_fdr_writer_live(const struct kx_fdr_writer *w);
/* As it was made, with defaults filled in. */
const struct kx_fdr_options *kx_fdr_writer_options(const struct kx_fdr_writer *w);
/* Bytes of memory that open buffers hold now. */
size_t kx_fdr_writer_memory(const struct kx_fdr_writer *w);

void kx_fdr_writer_free(struct kx_fdr_writer *w);

#endif
