// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/self_code.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/mappings.h"

#define MAX_MAPPINGS 128
#define BREAKPOINT   0xcc
#define CALL	     0xe8

struct text {
	uint8_t *start;
	size_t size;
	off_t offset; /* in the file */
	uint64_t inode;
	char path[256];
};

static bool holds(const struct text *t, const void *address)
{
	return (const uint8_t *)address >= t->start && (const uint8_t *)address < t->start + t->size;
}

struct listing {
	struct text *items;
	unsigned n;
};

/* The program itself does not count: probes are tried on a function of it. */
static int add_text(void *ctx, const struct kx_mapping *m)
{
	struct listing *l = ctx;
	struct text *t = &l->items[l->n];

	if (l->n == MAX_MAPPINGS || !m->executable || m->writable || !m->inode ||
	    strlen(m->path) >= sizeof(t->path))
		return l->n == MAX_MAPPINGS;
	*t = (struct text){ .start = (uint8_t *)(uintptr_t)m->start,
			    .size = (size_t)(m->end - m->start),
			    .offset = (off_t)m->offset,
			    .inode = m->inode };
	strcpy(t->path, m->path);
	l->n += !holds(t, (const void *)(uintptr_t)add_text);
	return 0;
}

/* The executable mappings of libraries. */
static unsigned list_text(struct text *list)
{
	struct listing l = { .items = list };

	kx_mappings_each(getpid(), add_text, &l);
	return l.n;
}

/* The very file that is mapped, which may have no name any more. */
static int open_file(const struct text *t)
{
	struct stat st;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)t->start,
		 (unsigned long)(t->start + t->size));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	fd = open(t->path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &st) || st.st_ino != t->inode)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool read_text(const struct text *t, uint8_t *copy)
{
	int fd = open_file(t);
	size_t done = 0;
	ssize_t n = 1;

	while (fd >= 0 && done < t->size && n > 0) {
		n = pread(fd, copy + done, t->size - done, t->offset + (off_t)done);
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	return fd >= 0 && n >= 0;
}

/*
 * Memory may differ from the file by breakpoints of probes, which must not be copied,
 * and by the calls that the kernel makes of 5-byte nops for them; by nothing else.
 */
static bool is_copy(const struct text *t, const uint8_t *copy)
{
	static const uint8_t nop[4] = { 0x0f, 0x1f, 0x44, 0x00 };

	for (size_t i = 0; i < t->size; i++) {
		if (t->start[i] == copy[i] || t->start[i] == BREAKPOINT)
			continue;
		if (t->start[i] != CALL || t->size - i < 5 || memcmp(copy + i, nop, sizeof(nop)))
			return false;
		i += 4;
	}
	return true;
}

static bool replace(const struct text *t)
{
	uint8_t *copy = mmap(NULL, t->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);

	if (copy == MAP_FAILED)
		return false;
	/* works even for this code: after the system call the same bytes are at this address */
	if (read_text(t, copy) && is_copy(t, copy) &&
	    !mprotect(copy, t->size, PROT_READ | PROT_EXEC) &&
	    mremap(copy, t->size, t->size, MREMAP_MAYMOVE | MREMAP_FIXED, t->start) != MAP_FAILED)
		return true;
	munmap(copy, t->size);
	return false;
}

unsigned kx_self_code_hide(void)
{
	static struct text list[MAX_MAPPINGS];
	unsigned n = list_text(list), replaced = 0;

	for (unsigned i = 0; i < n; i++)
		replaced += replace(&list[i]);
	return replaced;
}
