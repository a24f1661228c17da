// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/kernel_link.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/kernel_files.h"

#define KPROBE_MULTI_RETURN 1 /* flag of the link */

/* What bpf(BPF_LINK_CREATE) takes for kprobe_multi links (linux/bpf.h of 5.18). */
struct kprobe_multi_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t link_flags;
	uint32_t flags;
	uint32_t cnt;
	uint64_t syms;
	uint64_t addrs;
	uint64_t cookies;
};

/* What bpf(BPF_OBJ_GET_INFO_BY_FD) reports on the links made here (linux/bpf.h of 6.7). */
struct link_info {
	uint32_t type;
	uint32_t id;
	uint32_t prog_id;
	uint32_t pad;
	union {
		struct {
			uint64_t addrs;
			uint32_t count;
			uint32_t flags;
			uint64_t missed;
			uint64_t cookies;
		} kprobe_multi;
		struct {
			uint32_t type;
			uint32_t pad;
			uint64_t func_name;
			uint32_t name_len;
			uint32_t offset;
			uint64_t addr;
			uint64_t missed;
			uint64_t cookie;
		} kprobe;
		uint8_t room[128]; /* newer kernels may report more */
	};
};

/* Of enum bpf_link_type and enum bpf_perf_event_type. */
#define LINK_PERF_EVENT 7
#define LINK_KPROBE_MULTI 8
#define PERF_EVENT_KPROBE 3

int kx_kernel_link_multi(int prog_fd, unsigned attach_type, bool is_return, const uint64_t *addrs,
			 const char *const *syms, const uint64_t *cookies, uint32_t count)
{
	struct kprobe_multi_attr attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = attach_type,
		.flags = is_return ? KPROBE_MULTI_RETURN : 0,
		.cnt = count,
		.syms = (uint64_t)(uintptr_t)syms,
		.addrs = (uint64_t)(uintptr_t)(syms ? NULL : addrs),
		.cookies = (uint64_t)(uintptr_t)cookies,
	};
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

int kx_kernel_link_single(int prog_fd, uint64_t addr, const char *name, bool is_return,
			  uint64_t cookie, struct kx_links *links)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.config = is_return, /* format/retprobe: config:0 */
					.kprobe_func = (uint64_t)(uintptr_t)(addr ? NULL : name) };
	static int type;

	if (type <= 0)
		type = kx_pmu_type("kprobe");
	if (type < 0)
		return type;
	attr.type = (uint32_t)type;
	if (addr)
		attr.kprobe_addr = addr;
	return kx_uprobe_link_event(prog_fd, &attr, 0, cookie, links);
}

int kx_kernel_link_tracing(int prog_fd, bool is_return, uint64_t cookie)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .tracing.cookie = cookie);

	return bpf_link_create(prog_fd, 0, is_return ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY, &opts);
}

static uint64_t program_missed(uint32_t id)
{
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id), err;

	if (fd < 0)
		return 0;
	err = bpf_obj_get_info_by_fd(fd, &info, &size);
	close(fd);
	return err ? 0 : info.recursion_misses;
}

static int compare_ids(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

uint64_t kx_kernel_links_missed(const struct kx_links *links)
{
	uint32_t *ids = calloc(links->count + 1, sizeof(*ids));
	uint64_t missed = 0;
	size_t n = 0;

	for (size_t i = 0; ids && i < links->count; i++) {
		struct link_info info = { 0 };
		__u32 size = sizeof(info);

		/* the perf events among them are no links */
		if (bpf_obj_get_info_by_fd(links->fds[i], &info, &size))
			continue;
		ids[n++] = info.prog_id;
		/* a return that passed unseen leaves a call that the stack pointers close */
		if (info.type == LINK_KPROBE_MULTI && !(info.kprobe_multi.flags & KPROBE_MULTI_RETURN))
			missed += info.kprobe_multi.missed;
		else if (info.type == LINK_PERF_EVENT && info.kprobe.type == PERF_EVENT_KPROBE)
			missed += info.kprobe.missed;
	}
	qsort(ids, n, sizeof(*ids), compare_ids);
	for (size_t i = 0; i < n; i++)
		if (!i || ids[i] != ids[i - 1])
			missed += program_missed(ids[i]);
	free(ids);
	return missed;
}
