// SPDX-License-Identifier: BSD-2-Clause
/* Synthetic events through the table of threads into a file, read back. Include it after cmocka's headers. */
#ifndef KX_TEST_THREAD_TABLE_RIG_H
#define KX_TEST_THREAD_TABLE_RIG_H

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/thread_table.h"
#include "trace/fdr_reader.h"
#include "trace/notes.h"

#define T0 1000000ULL
#define LINGER 1000
/* Ids that no thread of this machine has: kernel.pid_max is at most 2^22. */
#define TID(n) (0x500000u + (uint32_t)(n))

static char path[] = "/tmp/kx_threads_XXXXXX";

struct run {
	struct kx_fdr_writer *w;
	struct kx_process_table *processes;
	struct kx_thread_table *t;
	struct kx_callstack_counts counts;
	uint64_t migrations;
	size_t released;
	int fd;
};

static inline void start_limited(struct run *r, size_t max_threads, size_t idle_bytes)
{
	const struct kx_fdr_options o = { .tsc_hz = 1000000000, .start_tsc = T0, .wall_sec = 5 };
	struct kx_thread_options threads = { .linger = LINGER, .max_threads = max_threads, .idle_bytes = idle_bytes };
	struct kx_err err = { 0 };

	memset(r, 0, sizeof(*r));
	r->fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(r->fd >= 0);
	assert_int_equal(kx_fdr_writer_new(r->fd, &o, &r->w, &err), 0);
	threads.writer = r->w;
	threads.processes = r->processes = kx_process_table_new();
	assert_non_null(r->processes);
	r->t = kx_thread_table_new(&threads);
	assert_non_null(r->t);
}

static inline void start(struct run *r)
{
	start_limited(r, 0, 0);
}

static inline void push(struct run *r, uint32_t tid, enum kx_event_kind kind, uint64_t tsc, uint32_t func,
			uint64_t sp, const uint64_t *words, unsigned n)
{
	const struct kx_event ev = { .tsc = T0 + tsc, .sp = sp, .func = func,
					    .kind = (uint8_t)kind, .words = (uint8_t)n };
	struct kx_thread *thread = kx_thread_table_get(r->t, tid);

	assert_non_null(thread);
	assert_int_equal(kx_thread_push(thread, &ev, words), 0);
}

static inline void pack(const char *name, uint32_t parent, uint32_t ns_tid, uint64_t words[3])
{
	char comm[16] = "";

	strncpy(comm, name, sizeof(comm));
	memcpy(words, comm, sizeof(comm));
	words[2] = parent | (uint64_t)ns_tid << 32;
}

static inline void born(struct run *r, uint32_t tid, uint32_t pid, uint32_t parent, uint32_t ns_tid,
			const char *name, uint64_t tsc)
{
	uint64_t words[3];

	pack(name, parent, ns_tid, words);
	push(r, tid, KX_EVENT_THREAD_NEW, tsc, pid, 0, words, 3);
}

static inline void renamed(struct run *r, uint32_t tid, uint32_t pid, const char *name, uint64_t tsc)
{
	uint64_t words[3];

	pack(name, 0, 0, words);
	push(r, tid, KX_EVENT_THREAD_NAME, tsc, pid, 0, words, 2);
}

static inline void ended(struct run *r, uint32_t tid, uint32_t pid, const char *name, uint64_t tsc)
{
	uint64_t words[3];

	pack(name, 0, 0, words);
	push(r, tid, KX_EVENT_THREAD_EXIT, tsc, pid, 0, words, 2);
}

static inline void enter(struct run *r, uint32_t tid, uint32_t func, uint64_t tsc)
{
	push(r, tid, KX_EVENT_ENTRY, tsc, func, 0x7000 - func, NULL, 0);
}

static inline void leave(struct run *r, uint32_t tid, uint32_t func, uint64_t tsc)
{
	push(r, tid, KX_EVENT_EXIT, tsc, func, 0x7000 - func, NULL, 0);
}

static inline void call(struct run *r, uint32_t tid, uint32_t func, uint64_t tsc)
{
	enter(r, tid, func, tsc);
	leave(r, tid, func, tsc + 1);
}

static inline void release(struct run *r, uint64_t watermark)
{
	if (watermark != UINT64_MAX)
		watermark += T0;
	assert_int_equal(kx_thread_table_release(r->t, watermark, &r->counts, &r->migrations,
						 &r->released), 0);
}

/* Writes everything; *json: the processes for the session. */
static inline void finish(struct run *r, json_t **json)
{
	struct kx_err err = { 0 };

	release(r, UINT64_MAX);
	assert_int_equal(kx_thread_table_end_gone(r->t), 0);
	release(r, UINT64_MAX);
	assert_int_equal(kx_fdr_finish(r->w, 0, &err), 0);
	if (json)
		*json = kx_process_table_json(r->processes, T0, 1000000000);
	kx_thread_table_free(r->t);
	kx_process_table_free(r->processes);
	kx_fdr_writer_free(r->w);
	close(r->fd);
}

/*
 * The trace as text, one thread after the other: "[pid/tid name process ns_pid/ns_tid" where a thread
 * begins, "=name" where its name changes, "+3" and "-3" for entry and exit, "~" before a repaired one.
 */
static inline void as_text(char *out, size_t size)
{
	struct kx_err err = { 0 };
	struct kx_fdr_file *f;
	size_t n = 0;

	if (kx_fdr_open(path, &f, &err))
		fail_msg("%s", err.text);
	out[0] = 0;
	for (size_t i = 0; i < kx_fdr_nthreads(f); i++) {
		uint64_t repaired = 0, last = T0;
		struct kx_fdr_cursor *c;
		struct kx_fdr_record rec;

		assert_int_equal(kx_fdr_thread_cursor(f, i, &c), 0);
		while (kx_fdr_next(c, &rec, &err) > 0) {
			struct kx_note note;

			kx_note_read(&rec, &note);
			if (note.kind == KX_NOTE_THREAD && rec.tsc == T0) {
				last = T0;
				n += (size_t)snprintf(out + n, size - n, "%s[%x/%x %s %s %u/%u",
					n ? " " : "", rec.pid, rec.tid, note.thread.name,
					note.thread.process, (unsigned)note.thread.ns_pid,
					(unsigned)note.thread.ns_tid);
			} else if (note.kind == KX_NOTE_THREAD) {
				n += (size_t)snprintf(out + n, size - n, " =%s", note.thread.name);
			} else if (note.kind == KX_NOTE_REPAIRED) {
				repaired += note.repaired.exits;
			}
			kx_note_release(&note);
			if (rec.kind <= KX_RECORD_TAIL_EXIT) {
				bool is_exit = rec.kind != KX_RECORD_ENTRY;

				n += (size_t)snprintf(out + n, size - n, " %s%c%u",
						      is_exit && repaired ? "~" : "",
						      is_exit ? '-' : '+', rec.func);
				repaired -= is_exit && repaired;
			}
			if (rec.kind == KX_RECORD_BUFFER)
				continue;
			assert_true(rec.tsc >= last || (rec.kind == KX_RECORD_CPU && rec.tsc == T0));
			last = rec.tsc;
		}
		kx_fdr_cursor_free(c);
		assert_true(n < size);
	}
	kx_fdr_close(f);
}

#define assert_trace(text)                           \
	do {                                         \
		char got_[4096];                     \
		as_text(got_, sizeof(got_));           \
		assert_string_equal(got_, text);     \
	} while (0)

static inline int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

#endif
