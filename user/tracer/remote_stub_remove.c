// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_stub_remove.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "tracer/remote_stop.h"
#include "tracer/remote_stub.h"
#include "tracer/remote_threads.h"

static void mark(void *ctx, uint64_t counter)
{
	(void)counter;
	*(bool *)ctx = true;
}

int kx_remote_stub_remove(pid_t pid, int mem, struct kx_err *err)
{
	static const uint8_t zeros[KX_REMOTE_STUB_MOST];
	struct kx_remote_threads threads;
	struct kx_remote_range range;
	bool there, inside = false;
	const uint64_t at = kx_remote_stub_find(kx_remote_view(pid), mem, &there);
	int code;

	if (!there)
		return 0;
	code = kx_remote_threads_stop(pid, KX_REMOTE_STOP_MS, &threads, err);
	if (code)
		return code;
	range = (struct kx_remote_range){ at, at + kx_remote_stub_size() };
	code = kx_remote_threads_scan(&threads, pid, mem, &range, 1, mark, &inside, err);
	if (!code && inside)
		code = kx_err_set(err, -EBUSY,
				  "a thread of process %d makes system calls for kxray", (int)pid);
	if (!code && pwrite(mem, zeros, kx_remote_stub_size(), (off_t)at) < 0)
		code = kx_err_set(err, -errno, "the memory of process %d cannot be written: %s",
				  (int)pid, strerror(errno));
	kx_remote_threads_resume(&threads, NULL);
	return code;
}
