// SPDX-License-Identifier: BSD-2-Clause
#include "attach/thread_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rseq.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracer/remote_threads.h"

/*
 * glibc's struct pthread (nptl/descr.h, 2.4 to 2.41): the thread pointer is its address and stands at 16 in it; the
 * thread's id follows 704 bytes of header and a list's two pointers.
 */
#define SELF	0x10
#define TID	0x2d0
/* From 2.35 to 2.40 it has the thread's struct rseq behind that; its size is at most this. */
#define MOST	0xb00
#define STOP_MS 2000 /* for all threads to stop */

static bool has_layout(int memory, const struct kx_remote_thread *t)
{
	const uint64_t thread = t->regs.fs_base;
	uint64_t self;
	int32_t tid;

	return thread && pread(memory, &self, sizeof(self), (off_t)(thread + SELF)) == sizeof(self) && self == thread &&
	       pread(memory, &tid, sizeof(tid), (off_t)(thread + TID)) == sizeof(tid) && tid == t->tid;
}

/* Of one thread; 0: it is not registered with the kernel, or not by glibc in struct pthread, where new threads have it as well. */
static uint32_t cpu_offset(const struct kx_remote_thread *t)
{
	const uint64_t at = t->rseq - t->regs.fs_base;

	return t->rseq && at > TID && at <= MOST - sizeof(struct rseq) ? (uint32_t)(at + offsetof(struct rseq, cpu_id)) : 0;
}

static int read_layout(int memory, const struct kx_remote_threads *threads, struct kx_thread_layout *out, struct kx_err *err)
{
	bool differs = false;

	*out = (struct kx_thread_layout){ .tid = TID };
	for (size_t i = 0; i < threads->n; i++) {
		const struct kx_remote_thread *t = &threads->items[i];
		const uint32_t cpu = cpu_offset(t);

		if (!has_layout(memory, t))
			return kx_err_set(err, -EOPNOTSUPP, "its thread %d was not made by a glibc whose threads kxray knows", (int)t->tid);
		differs |= (cpu && out->cpu && cpu != out->cpu) || (t->rseq && !cpu);
		if (cpu)
			out->cpu = cpu;
	}
	if (differs)
		out->cpu = 0;
	return 0;
}

int kx_thread_layout_read(pid_t pid, struct kx_thread_layout *out, struct kx_err *err)
{
	struct kx_remote_threads threads;
	char path[32];
	int memory, code;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return kx_err_set(err, errno == ENOENT ? -ESRCH : -errno, "cannot open '%s': %s", path, strerror(errno));
	code = kx_remote_threads_stop(pid, STOP_MS, &threads, err);
	if (!code) {
		code = read_layout(memory, &threads, out, err);
		kx_remote_threads_resume(&threads, NULL);
	}
	close(memory);
	return code;
}
