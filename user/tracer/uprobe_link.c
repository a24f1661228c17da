// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/uprobe_link.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/kernel_files.h"
#include "bpf/wire.h"

/* Flag of uprobe_multi links: probes fire on return. */
#define UPROBE_MULTI_RETURN 1

/* The kernel's own "not supported", which it lets out to user space here. */
#define KERNEL_ENOTSUPP 524

/*
 * A close waits until no CPU can be in the probe's program any more, which takes tens of
 * milliseconds of sleep; many closes can wait together.
 */
#define MAX_CLOSERS 64

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

unsigned kx_mechanism_attach_type(enum kx_mechanism m)
{
	switch (m) {
	case KX_MECHANISM_SESSION:
		return KX_BPF_TRACE_UPROBE_SESSION;
	case KX_MECHANISM_MULTI:
		return KX_BPF_TRACE_UPROBE_MULTI;
	default:
		return 0;
	}
}

const char *kx_mechanism_name(enum kx_mechanism m)
{
	static const char *const names[] = { "uprobe.session", "uprobe.multi", "uprobe" };

	return m < KX_MECHANISM_COUNT ? names[m] : "?";
}

static int create_multi_link(enum kx_mechanism m, int prog_fd, const char *path, pid_t pid,
			     bool is_return, const uint64_t *offsets, const uint64_t *cookies,
			     uint32_t count)
{
	struct uprobe_multi_attr attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = kx_mechanism_attach_type(m),
		.path = (uint64_t)(uintptr_t)path,
		.offsets = (uint64_t)(uintptr_t)offsets,
		.cookies = (uint64_t)(uintptr_t)cookies,
		.cnt = count,
		/* a session with this flag would report only returns */
		.flags = is_return && m == KX_MECHANISM_MULTI ? UPROBE_MULTI_RETURN : 0,
		.pid = (uint32_t)pid,
	};
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

static int open_single_event(const char *path, pid_t pid, bool is_return, uint64_t offset)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	static int type;
	long fd;

	if (type <= 0)
		type = kx_pmu_type("uprobe");
	if (type < 0)
		return type;
	attr.type = (uint32_t)type;
	attr.config = is_return; /* format/retprobe: config:0 */
	attr.uprobe_path = (uint64_t)(uintptr_t)path;
	attr.probe_offset = offset;
	fd = syscall(SYS_perf_event_open, &attr, pid ? pid : -1, pid ? -1 : 0, -1,
		     PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int kx_links_add(struct kx_links *links, int fd)
{
	if (links->count == links->room) {
		size_t room = links->room ? links->room * 2 : 16;
		int *fds = realloc(links->fds, room * sizeof(*fds));

		if (!fds)
			return -ENOMEM;
		links->fds = fds;
		links->room = room;
	}
	links->fds[links->count++] = fd;
	return 0;
}

/* Attaches the program and adds both descriptors; takes @event_fd over. */
static int link_event(int prog_fd, int event_fd, uint64_t cookie, struct kx_links *links)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	int link_fd = bpf_link_create(prog_fd, event_fd, BPF_PERF_EVENT, &opts), err;

	err = link_fd < 0 ? link_fd : kx_links_add(links, link_fd);
	if (err) {
		if (link_fd >= 0)
			close(link_fd);
		close(event_fd);
		return err;
	}
	err = kx_links_add(links, event_fd);
	if (err)
		close(event_fd);
	return err;
}

static int attach_single(int prog_fd, const char *path, pid_t pid, bool is_return,
			 const struct kx_probe *probe, struct kx_links *links)
{
	int event_fd = open_single_event(path, pid, is_return, probe->offset);

	return event_fd < 0 ? event_fd : link_event(prog_fd, event_fd, probe->cookie, links);
}

int kx_uprobe_link_event(int prog_fd, const struct perf_event_attr *attr, int cpu, uint64_t cookie,
		    struct kx_links *links)
{
	long fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : link_event(prog_fd, (int)fd, cookie, links);
}

/* Errors that are about one probed instruction, not about the whole request. */
static bool is_about_instruction(int err)
{
	return err == -EINVAL || err == -ENOTSUP || err == -KERNEL_ENOTSUPP || err == -ENOEXEC ||
	       err == -EILSEQ || err == -EIO;
}

struct request {
	enum kx_mechanism mechanism;
	int prog_fd;
	const char *path;
	pid_t pid;
	bool is_return;
	const struct kx_probe *probes;
	uint64_t *offsets, *cookies;
	struct kx_links *links;
	kx_uprobe_refused refused;
	void *ctx;
};

/* One link for the range; where the kernel refuses it, two for its halves, down to the culprits. */
static int attach_range(const struct request *r, size_t from, size_t count)
{
	int fd, err;

	if (r->mechanism == KX_MECHANISM_SINGLE) {
		err = attach_single(r->prog_fd, r->path, r->pid, r->is_return, &r->probes[from],
				    r->links);
	} else {
		fd = create_multi_link(r->mechanism, r->prog_fd, r->path, r->pid, r->is_return,
				       r->offsets + from, r->cookies + from, (uint32_t)count);
		err = fd < 0 ? fd : kx_links_add(r->links, fd);
		if (fd >= 0 && err)
			close(fd);
	}
	if (!err || !is_about_instruction(err))
		return err;
	if (count == 1) {
		r->refused(r->ctx, &r->probes[from], err);
		return 0;
	}
	err = attach_range(r, from, count / 2);
	return err ? err : attach_range(r, from + count / 2, count - count / 2);
}

/* The path to show for a file: what a descriptor is open on, instead of /proc/self/fd/N. */
static const char *path_to_show(const char *path, char *target, size_t size)
{
	ssize_t n = strncmp(path, "/proc/", 6) ? -1 : readlink(path, target, size - 1);

	if (n <= 0)
		return path;
	target[n] = 0;
	return target;
}

static int explain(int code, const struct request *r, struct kx_err *err)
{
	char target[512];
	const char *path = path_to_show(r->path, target, sizeof(target));

	switch (code) {
	case -ESRCH:
		return kx_err_set(err, code, "process %d ended while its probes were being attached",
				  r->pid);
	case -EPERM:
	case -EACCES:
		return kx_err_set(err, code,
				  "the kernel does not let this user attach probes to '%s' (%s); run "
				  "as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE",
				  path, strerror(-code));
	case -EMFILE:
		return kx_err_set(err, code,
				  "too many open files for the probes of '%s'; raise 'ulimit -n' or "
				  "trace fewer functions",
				  path);
	default:
		return kx_err_set(err, code, "probes cannot be attached to '%s': %s", path,
				  strerror(-code));
	}
}

int kx_uprobe_link(enum kx_mechanism m, int prog_fd, const char *path, pid_t pid, bool is_return,
	      const struct kx_probe *probes, size_t nprobes, struct kx_links *links,
	      kx_uprobe_refused refused, void *ctx, struct kx_err *err)
{
	size_t before = links->count;
	struct request r = { .mechanism = m,
			     .prog_fd = prog_fd,
			     .path = path,
			     .pid = pid,
			     .is_return = is_return,
			     .probes = probes,
			     .links = links,
			     .refused = refused,
			     .ctx = ctx };
	int code = 0;

	if (!nprobes)
		return 0;
	if (m == KX_MECHANISM_SINGLE) {
		for (size_t i = 0; i < nprobes && !code; i++)
			code = attach_range(&r, i, 1);
	} else {
		r.offsets = calloc(nprobes, sizeof(*r.offsets));
		r.cookies = calloc(nprobes, sizeof(*r.cookies));
		if (!r.offsets || !r.cookies)
			code = -ENOMEM;
		for (size_t i = 0; i < nprobes && !code; i++) {
			r.offsets[i] = probes[i].offset;
			r.cookies[i] = KX_COOKIE_WITH_PLACE(probes[i].cookie, probes[i].offset);
		}
		if (!code)
			code = attach_range(&r, 0, nprobes);
		free(r.offsets);
		free(r.cookies);
	}
	if (!code)
		return 0;
	while (links->count > before)
		close(links->fds[--links->count]);
	return explain(code, &r, err);
}

void kx_links_join(struct kx_links *to, struct kx_links *from)
{
	while (from->count && kx_links_add(to, from->fds[from->count - 1]) == 0)
		from->count--;
	kx_links_close(from);
}

struct closer {
	struct kx_links *links;
	size_t next;
};

static void *close_some(void *arg)
{
	struct closer *c = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED)) < c->links->count)
		close(c->links->fds[i]);
	return NULL;
}

void kx_links_close(struct kx_links *links)
{
	struct closer c = { .links = links };
	pthread_t threads[MAX_CLOSERS];
	size_t n = 0;

	while (n < MAX_CLOSERS && n + 1 < links->count &&
	       pthread_create(&threads[n], NULL, close_some, &c) == 0)
		n++;
	close_some(&c);
	while (n)
		pthread_join(threads[--n], NULL);
	free(links->fds);
	memset(links, 0, sizeof(*links));
}
