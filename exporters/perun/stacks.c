// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/perun/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/temporary_file.h"

void kx_perun_stacks_free(struct kx_perun_stacks *s)
{
	if (s->calls)
		munmap(s->calls, s->ncalls * sizeof(*s->calls));
	free(s->items);
	free(s->paths);
	kx_pair_map_free(&s->index);
	memset(s, 0, sizeof(*s));
}

uint32_t kx_perun_stack_index(struct kx_perun_stacks *s, uint32_t parent,
			      const struct kx_perun_function *function, uint32_t thread,
			      uint32_t *path)
{
	uint32_t at, item, *link;
	int r;

	if (KX_ARRAY_RESERVE(s->items, s->room, s->count) ||
	    KX_ARRAY_RESERVE(s->paths, s->paths_room, s->index.count))
		return KX_PERUN_NO_STACK;
	r = kx_pair_index(&s->index, parent, function->uid, &at);
	if (r < 0 || s->count >= KX_PERUN_OUTERMOST)
		return KX_PERUN_NO_STACK;
	if (r)
		s->paths[at] = KX_PERUN_NO_STACK;
	link = &s->paths[at];
	while (*link != KX_PERUN_NO_STACK && s->items[*link].func != function->same)
		link = &s->items[*link].other;
	item = *link;
	if (item == KX_PERUN_NO_STACK) {
		item = *link = (uint32_t)s->count;
		s->items[s->count++] = (struct kx_perun_stack){ .parent = parent,
								.func = function->same,
								.uid = function->uid,
								.other = KX_PERUN_NO_STACK,
								.thread = thread };
	}
	*path = s->paths[at];
	return item;
}

/* A temporary file of @size bytes, mapped. NULL and errno on failure. */
static void *map_temporary(uint64_t size)
{
	int fd = kx_temporary_file(), error;
	void *data;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	/* Allocates the blocks: a full disk fails here instead of raising SIGBUS later. */
	error = posix_fallocate(fd, 0, (off_t)size);
	data = error ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!error && data == MAP_FAILED)
		error = errno;
	close(fd);
	errno = error;
	return error ? NULL : data;
}

int kx_perun_stacks_place(struct kx_perun_stacks *s, struct kx_err *err)
{
	for (size_t i = 0; i < s->count; i++) {
		s->items[i].start = s->ncalls;
		s->ncalls += s->items[i].ncalls;
	}
	if (!s->ncalls)
		return 0;
	s->calls = map_temporary(s->ncalls * sizeof(*s->calls));
	if (!s->calls)
		return kx_err_set(err, -errno, "perun: no temporary file of %llu bytes for the "
				  "calls: %s; set TMPDIR to a folder with room",
				  (unsigned long long)(s->ncalls * sizeof(*s->calls)),
				  strerror(errno));
	return 0;
}

void kx_perun_stacks_drop_pages(struct kx_perun_stacks *s)
{
	s->touched = 0;
	madvise(s->calls, s->ncalls * sizeof(*s->calls), MADV_DONTNEED);
}
