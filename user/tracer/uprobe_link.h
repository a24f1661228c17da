// SPDX-License-Identifier: BSD-2-Clause
/*
 * Uprobe links: many probes of one binary by one bpf(BPF_LINK_CREATE), or one perf event each where
 * the kernel has nothing better. uprobe_try.h finds out which mechanism works. Where a keeper runs
 * (keeper.h), it creates and closes them.
 */
#ifndef KX_UPROBE_LINK_H
#define KX_UPROBE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "tracer/uprobe_syscalls.h"

enum kx_mechanism {
	KX_MECHANISM_SESSION, /* uprobe.session: entry and return by one program, kernel 6.13 */
	KX_MECHANISM_MULTI,   /* uprobe.multi: one link for many probes, kernel 6.6 */
	KX_MECHANISM_SINGLE,  /* a perf event for each probe, with a cookie: kernel 5.15 */
	KX_MECHANISM_COUNT,
};

/* expected_attach_type for programs of that mechanism; 0 for single uprobes. */
unsigned kx_mechanism_attach_type(enum kx_mechanism m);
const char *kx_mechanism_name(enum kx_mechanism m); /* "uprobe.session", ... */

struct kx_probe {
	uint64_t offset;  /* file offset of the probed instruction */
	uint64_t cookie;  /* see KX_COOKIE_* in wire.h */
	uint64_t semaphore; /* file offset of a counter of 2 bytes that the kernel raises in each process that has the probe; 0: none */
	uint32_t index;   /* the caller's own number, for kx_uprobe_refused */
};

/*
 * Called for each probe that the kernel refuses, with its negative errno; the others are attached. NULL: a
 * refused probe is an error of the call.
 */
typedef void (*kx_uprobe_refused)(void *ctx, const struct kx_probe *probe, int err);

struct kx_links {
	int *fds; /* link and perf event descriptors; closing one detaches it */
	size_t count, room;
};

/*
 * Attaches @prog_fd at each of @probes in the file @path for process @pid (0: every process).
 * @is_return: return probes (multi and single; a session has both). Links are added to @links.
 * Errors: -ESRCH (the process is gone), -EPERM, -ENOMEM, -EINTR (base/stop_request.h), or the kernel's; then nothing of this
 * call stays attached.
 */
int kx_uprobe_link(enum kx_mechanism m, int prog_fd, const char *path, pid_t pid, bool is_return,
		   const struct kx_probe *probes, size_t nprobes, struct kx_links *links,
		   kx_uprobe_refused refused, void *ctx, struct kx_err *err);

struct perf_event_attr;

/*
 * Opens the perf event @attr on @cpu for all processes and attaches @prog_fd to it. Errors:
 * perf_event_open(2)'s and bpf(2)'s.
 */
int kx_uprobe_link_event(int prog_fd, const struct perf_event_attr *attr, int cpu, uint64_t cookie,
			 struct kx_links *links);

/* Takes over @fd. Errors: -ENOMEM; then @fd remains the caller's. */
int kx_links_add(struct kx_links *links, int fd);

/* Moves the links of @from to @to, to be closed together; without memory, closes them. */
void kx_links_join(struct kx_links *to, struct kx_links *from);

/* Detaches the links from the one with index @count on. */
void kx_links_truncate(struct kx_links *links, size_t count);

/* Detaches everything; when it returns, no probe program of these links runs any more. */
void kx_links_close(struct kx_links *links);

/*
 * Begins to detach everything, and returns at once; programs of these links may still run until kx_links_closing returns
 * more than this number. 0: all is detached.
 */
int kx_links_close_soon(struct kx_links *links);
int kx_links_closing(void);

/*
 * The same as kx_links_close, but where a process has a debugger (debugger.h), the keeper closes the links later.
 * Returns how many these are; their programs may still run.
 */
size_t kx_links_release(struct kx_links *links);

#endif
