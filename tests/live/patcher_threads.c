// SPDX-License-Identifier: BSD-2-Clause
/* The steps of patcher that stop threads, lend them priority, and borrow calls of theirs. */
#include "patcher.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tracer/patch_pause.h"
#include "tracer/remote_calls.h"
#include "tracer/remote_stop.h"
#include "tracer/remote_threads.h"

#define PAGE 4096ul

int patcher_stop(pid_t pid, int times, unsigned wait_ms)
{
	size_t most = 0;

	for (int i = 0; i < times; i++) {
		struct kx_remote_threads t;
		struct kx_err err = { 0 };

		if (kx_remote_threads_stop(pid, wait_ms, &t, &err))
			return fail(&err);
		most = t.n > most ? t.n : most;
		kx_remote_threads_resume(&t, NULL);
	}
	say("threads", (double)most);
	return 0;
}

int patcher_hold(pid_t pid)
{
	struct kx_remote_threads t;
	struct kx_err err = { 0 };

	if (kx_remote_threads_stop(pid, 1000, &t, &err))
		return fail(&err);
	for (size_t i = 0; i < t.n; i++)
		if (t.items[i].regs.orig_rax == SYS_epoll_wait ||
		    t.items[i].regs.orig_rax == SYS_epoll_pwait) {
			say("result", (double)(long)t.items[i].regs.rax);
			say("timeout", (int)t.items[i].regs.r10);
		}
	say("stopped", (double)t.n);
	wait_for_byte();
	kx_remote_threads_resume(&t, NULL);
	say("resumed", 0);
	return 0;
}

static int lend_priority(void *arg)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	struct kx_patch_pause pause;

	kx_patch_pause_begin(&pause, kx_patch_pause_priority(*(pid_t *)arg));
	say("raised", pause.raised);
	while (!poll(&input, 1, 0))
		kx_remote_pause_for(*(pid_t *)arg, 10000);
	return 0;
}

int patcher_lend(pid_t pid)
{
	struct kx_tracer_thread t;

	return kx_tracer_thread_start(&t, lend_priority, &pid) ? 1 : kx_tracer_thread_join(&t);
}

/* Two mappings, one call that fails, and one that gives what is known; then they are unmapped. */
static bool call_once(pid_t pid, unsigned wait_ms, struct kx_err *err)
{
	struct kx_remote_call first[4] = {
		{ .number = SYS_mmap,
		  .args = { 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 } },
		{ .number = SYS_munmap, .args = { 1, 1 } },
		{ .number = SYS_getpid },
		{ .number = SYS_mmap,
		  .args = { 0, 2 * PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0 } },
	};
	struct kx_remote_call second[2] = { 0 };

	if (kx_remote_calls(pid, first, 4, wait_ms, err))
		return false;
	second[0] =
		(struct kx_remote_call){ .number = SYS_munmap, .args = { first[0].result, PAGE } };
	second[1] = (struct kx_remote_call){ .number = SYS_munmap,
					     .args = { first[3].result, 2 * PAGE } };
	if (first[0].result <= 0 || first[1].result != -EINVAL || first[2].result != pid ||
	    first[3].result <= 0)
		return !kx_err_set(err, -EIO, "results %ld %ld %ld %ld", first[0].result,
				   first[1].result, first[2].result, first[3].result);
	if (kx_remote_calls(pid, second, 2, wait_ms, err))
		return false;
	return !second[0].result && !second[1].result;
}

int patcher_calls(pid_t pid, int times, unsigned wait_ms)
{
	int right = 0;

	for (int i = 0; i < times; i++) {
		struct kx_err err = { 0 };

		if (!call_once(pid, wait_ms, &err))
			return fail(&err);
		right++;
	}
	say("right", right);
	return 0;
}
