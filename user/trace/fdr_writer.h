// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes FDR files that llvm-xray 14 to 19 load: any version from 1 to 5, with buffers of many
 * threads interleaved. Each thread's time is monotonic: an older timestamp is raised to the newest.
 * That calls balance is the caller's job (see collect/callstack.h).
 *
 * Cost: 8 bytes for an entry or exit, 16 more for a change of CPU or a pause of over 2^32 ticks;
 * one write(2) per full buffer; memory of at most one buffer per live thread. A compressed file takes one write
 * for each group of buffers, and the memory of two groups.
 */
#ifndef KX_FDR_WRITER_H
#define KX_FDR_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/fdr.h"
#include "trace/notes.h"

struct kx_fdr_writer;
struct kx_fdr_thread;

struct kx_fdr_options {
	int version;	      /* 1 to 5; 0 means the newest */
	uint32_t buffer_size; /* bytes; 0: 64 KiB. Version 1: of every buffer */
	uint64_t tsc_hz;      /* ticks a second; header field cycle_frequency; 0: not known */
	bool constant_tsc;
	bool nonstop_tsc;
	uint64_t start_tsc; /* T0 >= 1: of every thread's first record; no event is older */
	uint64_t wall_sec;  /* CLOCK_MONOTONIC at T0: the base of WallTime records */
	uint32_t wall_usec;
	bool compress; /* the file is a .zst: see fdr_pack.h */
};

/* @o for a file of the same recording that begins at @tsc: with the start and the wall clock of then. */
struct kx_fdr_options kx_fdr_options_at(const struct kx_fdr_options *o, uint64_t tsc);

/*
 * Starts a file on @fd, which must be empty; the caller keeps owning it. It may be a pipe (ignore
 * SIGPIPE then). Writes the header. A buffer size is a multiple of 8 from 1 KiB to 256 MiB. Free
 * *@out with kx_fdr_writer_free. Errors: -EINVAL for an option out of range, -ENOMEM, else
 * write(2)'s.
 */
int kx_fdr_writer_new(int fd, const struct kx_fdr_options *options, struct kx_fdr_writer **out,
		      struct kx_err *err);

/*
 * The stream of one thread; created on first use, then the same one until kx_fdr_thread_end.
 * @identity becomes the thread's first note, at start_tsc; a second such note at that time means
 * that another thread got the same ids. Owned by the writer. NULL only if memory runs out.
 */
struct kx_fdr_thread *kx_fdr_writer_thread_of(struct kx_fdr_writer *w,
					      const struct kx_fdr_identity *identity);
/* The same without ids of a pid namespace. */
struct kx_fdr_thread *kx_fdr_writer_thread(struct kx_fdr_writer *w, int32_t pid, int32_t tid,
					   const char *name, const char *process);

/*
 * One record each, @tsc in ticks; a @tsc older than the thread's newest is raised to it. If @cpu is
 * not the thread's last one, a NewCPUId comes first; kx_fdr_cpu writes only that. A custom event
 * belongs to the thread's last CPU. Errors: -EINVAL for @func over KX_FDR_MAX_FUNC, @nargs over 8,
 * @size not 1 to 4096 (version 1: -EMSGSIZE where the buffer is too small for the payload);
 * -ENOMEM; else those of write(2) when a full buffer is written: the writer then truncates the file
 * after its last whole buffer (if it is a regular file), drops all open buffers, and returns the
 * same error from every later call.
 */
int kx_fdr_entry(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func,
		 const uint64_t *args, unsigned nargs);
int kx_fdr_exit(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func, bool tail);
/* Many of them, without arguments, in order of time. *@written: how many, also on an error, which is of the next one. */
struct kx_fdr_call {
	uint64_t tsc;
	uint32_t func;
	uint16_t cpu;
	uint16_t action; /* enum kx_fdr_action */
};
int kx_fdr_calls(struct kx_fdr_thread *t, const struct kx_fdr_call *calls, uint32_t n, uint32_t *written);
/* An entry that is not a hit of this file: the call began in an earlier part of a rotated trace. */
int kx_fdr_added_entry(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func);
/* An exit that no probe has hit: it closes a call whose own exit will not come. */
int kx_fdr_added_exit(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func);
int kx_fdr_cpu(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu);
/* Version 1 pads the payload with spaces to a multiple of 8 bytes. */
int kx_fdr_custom(struct kx_fdr_thread *t, uint64_t tsc, const void *payload, size_t size);
/* The custom event of a note. Errors: those of kx_note_format, too. */
int kx_fdr_note(struct kx_fdr_thread *t, uint64_t tsc, const struct kx_note *note);

/* Whether the thread has a record. */
bool kx_fdr_thread_has_records(const struct kx_fdr_thread *t);

/*
 * Closes the thread's open buffer and frees @t, also on error. Another thread may get the same ids
 * later; what is remembered for that has a fixed size.
 */
int kx_fdr_thread_end(struct kx_fdr_thread *t);

/*
 * For a file that is visible while it is written: one buffer with a session note, which the first
 * real buffer replaces, so that llvm-xray reads the trace of a recorder that was killed before. Not
 * for pipes: does nothing there. Errors: -ENOMEM, write(2)'s.
 */
int kx_fdr_write_placeholder(struct kx_fdr_writer *w, struct kx_err *err);

/* Writes all open buffers, so that the file is complete up to here, and frees their memory. */
int kx_fdr_flush(struct kx_fdr_writer *w, struct kx_err *err);

/*
 * Flushes and, if the file is seekable, sets the header's frequency to @tsc_hz (0: leaves it). A
 * trace without any thread gets one buffer with a session note, because llvm-xray rejects a bare
 * header.
 */
int kx_fdr_finish(struct kx_fdr_writer *w, uint64_t tsc_hz, struct kx_err *err);

/*
 * Function records that are in the file (not those in open buffers), without added ones. With options.compress
 * those of the open group count, until writing fails.
 */
uint64_t kx_fdr_writer_hits(const struct kx_fdr_writer *w);

/* Bytes in the file so far (compressed, if it is), without open buffers; threads that have a record. */
uint64_t kx_fdr_writer_bytes(const struct kx_fdr_writer *w);
/* The same if it were flushed now: open buffers count as full; of a compressed file an estimate. */
uint64_t kx_fdr_writer_bytes_flushed(const struct kx_fdr_writer *w);
uint64_t kx_fdr_writer_threads(const struct kx_fdr_writer *w);
/* Threads that have not ended. The writer's memory grows with nothing else. */
size_t kx_fdr_writer_live(const struct kx_fdr_writer *w);
/* Those of kx_fdr_writer_new, with defaults filled in. */
const struct kx_fdr_options *kx_fdr_writer_options(const struct kx_fdr_writer *w);
/* Bytes of memory in open buffers. */
size_t kx_fdr_writer_memory(const struct kx_fdr_writer *w);

void kx_fdr_writer_free(struct kx_fdr_writer *w);

#endif
