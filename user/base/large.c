// SPDX-License-Identifier: BSD-2-Clause
#include "base/large.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Only whole huge pages of the memory are advised, so at most its last one is in use for a few bytes. */
#define HUGE_PAGE  (2ul << 20)
#define LEAST_SIZE (2 * HUGE_PAGE)

void kx_large_advise(void *memory, size_t size)
{
	const uintptr_t from = ((uintptr_t)memory + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	const uintptr_t to = ((uintptr_t)memory + size) & ~(HUGE_PAGE - 1);

	/* a kernel without it refuses, and nothing is lost */
	if (size >= LEAST_SIZE)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
}

void kx_large_fill(void *memory, size_t size)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t from = ((uintptr_t)memory + page - 1) & ~(page - 1), to = ((uintptr_t)memory + size) & ~(page - 1);

	if (!memory)
		return;
	kx_large_advise(memory, size);
	/* since Linux 5.14; before, the pages come when they are written to */
	if (to > from)
		madvise((void *)from, to - from, MADV_POPULATE_WRITE);
}

void *kx_large_calloc(size_t n, size_t size)
{
	void *memory = calloc(n, size);

	if (memory)
		kx_large_advise(memory, n * size);
	return memory;
}
