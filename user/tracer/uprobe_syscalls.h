// SPDX-License-Identifier: BSD-2-Clause
/*
 * The system calls behind uprobe links. They run in the keeper's process, where there is one
 * (keeper.h), or in this one.
 */
#ifndef KX_UPROBE_SYSCALLS_H
#define KX_UPROBE_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A multi or session link, or a perf event for one probe. */
struct kx_uprobe_request {
	uint32_t attach_type;  /* of the link; 0: a perf event */
	int32_t prog_fd;       /* of the link */
	uint32_t event_type;   /* of the perf event: the number of the uprobe PMU */
	uint32_t is_return;    /* the probes fire on return */
	int32_t pid;	       /* 0: every process */
	uint32_t count;	       /* of probes; 1 for a perf event */
	const char *path;      /* of the probed file */
	const uint64_t *offsets;
	const uint64_t *cookies; /* unused for a perf event */
	const uint64_t *semaphores; /* see struct kx_probe; NULL: none has one */
};

/* Attach types of <linux/bpf.h> that older headers lack. */
#define KX_BPF_TRACE_UPROBE_MULTI 48
#define KX_BPF_TRACE_UPROBE_SESSION 57

/* A descriptor, or the kernel's negative errno. */
int kx_uprobe_create(const struct kx_uprobe_request *r);

/*
 * Closes @n descriptors, many at a time: a close that detaches waits until no CPU can be in the
 * probe's program any more, which takes tens of milliseconds of sleep.
 */
void kx_fds_close(const int *fds, size_t n);

#endif
