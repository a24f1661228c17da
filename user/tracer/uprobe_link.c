// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/uprobe_link.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/kernel_files.h"
#include "base/stop_request.h"
#include "bpf/wire.h"
#include "tracer/keeper.h"
#include "tracer/permission.h"

/* The kernel's own "not supported", which it lets out to user space here. */
#define KERNEL_ENOTSUPP 524

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

int kx_links_add(struct kx_links *links, int fd)
{
	if (KX_ARRAY_RESERVE(links->fds, links->room, links->count))
		return -ENOMEM;
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
		kx_keeper_close(&event_fd, 1);
		return err;
	}
	err = kx_links_add(links, event_fd);
	if (err)
		kx_keeper_close(&event_fd, 1);
	return err;
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
	struct kx_uprobe_request create; /* for all probes */
	const struct kx_probe *probes;
	struct kx_links *links;
	kx_uprobe_refused refused;
	void *ctx;
};

/* A perf event for one probe. */
static int attach_single(const struct request *r, size_t i)
{
	struct kx_uprobe_request one = r->create;
	static int type;
	int fd;

	if (type <= 0)
		type = kx_pmu_type("uprobe");
	if (type < 0)
		return type;
	one.event_type = (uint32_t)type;
	one.offsets = &r->probes[i].offset;
	one.semaphores = r->probes[i].semaphore ? &r->probes[i].semaphore : NULL;
	one.count = 1;
	fd = kx_keeper_create(&one);
	return fd < 0 ? fd : link_event(r->create.prog_fd, fd, r->probes[i].cookie, r->links);
}

static int attach_multi(const struct request *r, size_t from, size_t count)
{
	struct kx_uprobe_request range = r->create;
	int fd, err;

	range.offsets += from;
	range.cookies += from;
	if (range.semaphores)
		range.semaphores += from;
	range.count = (uint32_t)count;
	fd = kx_keeper_create(&range);
	if (fd < 0)
		return fd;
	err = kx_links_add(r->links, fd);
	if (err)
		kx_keeper_close(&fd, 1);
	return err;
}

/* One link for the range; where the kernel refuses it, two for its halves, down to the culprits. */
static int attach_range(const struct request *r, size_t from, size_t count)
{
	int err;

	/* each takes milliseconds, on a busy machine a quarter of a second */
	if (kx_stop_requested())
		return -EINTR;
	err = r->create.attach_type ? attach_multi(r, from, count) : attach_single(r, from);
	if (!err || !r->refused || !is_about_instruction(err))
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
	const char *path = path_to_show(r->create.path, target, sizeof(target));

	switch (code) {
	case -EINTR:
		return kx_err_set(err, code, "interrupted while probes were being attached to '%s'",
				  path);
	case -ESRCH:
		return kx_err_set(err, code, "process %d ended while its probes were being attached",
				  r->create.pid);
	case -EPERM:
	case -EACCES:
		if (!r->create.attach_type && kx_perf_uprobes_need_admin(code))
			return kx_err_set(err, code,
					  "the kernel does not let this user attach probes to '%s': "
					  "perf event uprobes need CAP_SYS_ADMIN here; leave out "
					  "--mechanism=single, or run as root or with CAP_SYS_ADMIN",
					  path);
		return kx_err_set(err, code,
				  "the kernel does not let this user attach probes to '%s' (%s); run "
				  "as root, or with %s",
				  path, strerror(-code), kx_needed_capabilities());
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

/* All probes by as few links as possible. */
static int attach_all(struct request *r, size_t n)
{
	const bool is_session = r->create.attach_type == kx_mechanism_attach_type(KX_MECHANISM_SESSION);
	uint64_t *offsets = calloc(n, sizeof(*offsets)), *cookies = calloc(n, sizeof(*cookies));
	uint64_t *semaphores = calloc(n, sizeof(*semaphores));
	int code = offsets && cookies && semaphores ? 0 : -ENOMEM;
	bool any = false;

	for (size_t i = 0; i < n && !code; i++) {
		offsets[i] = r->probes[i].offset;
		semaphores[i] = r->probes[i].semaphore;
		any |= semaphores[i] != 0;
		cookies[i] = is_session ? KX_COOKIE_WITH_PLACE(r->probes[i].cookie, r->probes[i].offset) :
					  r->probes[i].cookie;
	}
	r->create.offsets = offsets;
	r->create.cookies = cookies;
	r->create.semaphores = any ? semaphores : NULL;
	if (!code)
		code = attach_range(r, 0, n);
	free(offsets);
	free(cookies);
	free(semaphores);
	return code;
}

int kx_uprobe_link(enum kx_mechanism m, int prog_fd, const char *path, pid_t pid, bool is_return,
	      const struct kx_probe *probes, size_t nprobes, struct kx_links *links,
	      kx_uprobe_refused refused, void *ctx, struct kx_err *err)
{
	size_t before = links->count;
	struct request r = { .create = { .attach_type = kx_mechanism_attach_type(m),
					 .prog_fd = prog_fd,
					 .path = path,
					 .pid = pid,
					 .is_return = is_return },
			     .probes = probes,
			     .links = links,
			     .refused = refused,
			     .ctx = ctx };
	int code = 0;

	if (!nprobes)
		return 0;
	if (m != KX_MECHANISM_SINGLE)
		code = attach_all(&r, nprobes);
	else
		for (size_t i = 0; i < nprobes && !code; i++)
			code = attach_range(&r, i, 1);
	if (!code)
		return 0;
	kx_links_truncate(links, before);
	return explain(code, &r, err);
}

void kx_links_join(struct kx_links *to, struct kx_links *from)
{
	while (from->count && kx_links_add(to, from->fds[from->count - 1]) == 0)
		from->count--;
	kx_links_close(from);
}

void kx_links_truncate(struct kx_links *links, size_t count)
{
	kx_keeper_close(links->fds + count, links->count - count);
	links->count = count;
}

size_t kx_links_release(struct kx_links *links)
{
	size_t waiting = kx_keeper_release(links->fds, links->count);

	free(links->fds);
	memset(links, 0, sizeof(*links));
	return waiting;
}

void kx_links_close(struct kx_links *links)
{
	kx_links_truncate(links, 0);
	free(links->fds);
	memset(links, 0, sizeof(*links));
}

int kx_links_close_soon(struct kx_links *links)
{
	int number = kx_keeper_close_soon(links->fds, links->count);

	free(links->fds);
	memset(links, 0, sizeof(*links));
	return number;
}

int kx_links_closing(void)
{
	return kx_keeper_closing();
}
