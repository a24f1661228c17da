// SPDX-License-Identifier: BSD-2-Clause
/* An io_uring of a target's, by its system calls. */
#ifndef IO_RING_H
#define IO_RING_H

#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES	  8
#define RING_SIZE 4096

struct ring {
	int fd;
	char *memory; /* heads, tails, completions */
	struct io_uring_sqe *requests;
	struct io_uring_params p;
};

static inline unsigned *at(struct ring *r, unsigned offset)
{
	return (unsigned *)(r->memory + offset);
}

/* Nonzero: the kernel gives none. */
static inline int ring_open(struct ring *r, unsigned flags)
{
	const int way = PROT_READ | PROT_WRITE, kind = MAP_SHARED | MAP_POPULATE;

	memset(r, 0, sizeof(*r));
	r->p.flags = flags;
	r->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &r->p);
	if (r->fd < 0)
		return -1;
	r->memory = (char *)mmap(NULL, RING_SIZE, way, kind, r->fd, IORING_OFF_SQ_RING);
	r->requests = (struct io_uring_sqe *)mmap(NULL, ENTRIES * sizeof(*r->requests), way, kind, r->fd, IORING_OFF_SQES);
	return 0;
}

#endif
