// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/uprobe_syscalls.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/parallel.h"

/* Flag of uprobe_multi links: probes fire on return. */
#define UPROBE_MULTI_RETURN 1

/*
 * What bpf(BPF_LINK_CREATE) takes for uprobe_multi links (linux/bpf.h of 6.6). Older
 * headers and libbpf 1.1 do not know it, the system call does.
 */
struct uprobe_multi_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t link_flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t cnt;
	uint32_t flags;
	uint32_t pid;
	uint32_t pad;
};

static int create_link(const struct kx_uprobe_request *r)
{
	struct uprobe_multi_attr attr = {
		.prog_fd = (uint32_t)r->prog_fd,
		.attach_type = r->attach_type,
		.path = (uint64_t)(uintptr_t)r->path,
		.offsets = (uint64_t)(uintptr_t)r->offsets,
		.ref_ctr_offsets = (uint64_t)(uintptr_t)r->semaphores,
		.cookies = (uint64_t)(uintptr_t)r->cookies,
		.cnt = r->count,
		/* a session with this flag would report only returns */
		.flags = r->is_return && r->attach_type == KX_BPF_TRACE_UPROBE_MULTI ?
				 UPROBE_MULTI_RETURN :
				 0,
		.pid = (uint32_t)r->pid,
	};
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

/* In the config of a perf event: format/ref_ctr_offset. */
#define SEMAPHORE_SHIFT 32

static int open_event(const struct kx_uprobe_request *r)
{
	const uint64_t semaphore = r->semaphores ? r->semaphores[0] : 0;
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = r->event_type,
					.config = r->is_return /* format/retprobe: config:0 */ | semaphore << SEMAPHORE_SHIFT,
					.uprobe_path = (uint64_t)(uintptr_t)r->path,
					.probe_offset = r->offsets[0] };
	long fd;

	if (semaphore > UINT32_MAX)
		return -EINVAL;
	fd = syscall(SYS_perf_event_open, &attr, r->pid ? r->pid : -1, r->pid ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int kx_uprobe_create(const struct kx_uprobe_request *r)
{
	return r->attach_type ? create_link(r) : open_event(r);
}

struct closer {
	const int *fds;
	size_t count, next;
};

static void *close_some(void *arg)
{
	struct closer *c = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED)) < c->count)
		close(c->fds[i]);
	return NULL;
}

void kx_fds_close(const int *fds, size_t n)
{
	struct closer c = { .fds = fds, .count = n };

	kx_parallel_run(n, close_some, &c);
}
