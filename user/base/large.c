// SPDX-License-Identifier: BSD-2-Clause
#include "base/large.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Only whole huge pages of the memory are advised, so at most its last one is in use for a few bytes. */
#define HUGE_PAGE  (2ul << 20)
#define LEAST_SIZE (2 * HUGE_PAGE)

/* Only of whole @unit bytes, a power of two. A kernel that does not know the advice refuses, and nothing is lost. */
static void advise_whole(void *memory, size_t size, uintptr_t unit, int advice)
{
	const uintptr_t from = ((uintptr_t)memory + unit - 1) & ~(unit - 1), to = ((uintptr_t)memory + size) & ~(unit - 1);

	if (to > from)
		madvise((void *)from, to - from, advice);
}

void kx_large_advise(void *memory, size_t size)
{
	if (size >= LEAST_SIZE)
		advise_whole(memory, size, HUGE_PAGE, MADV_HUGEPAGE);
}

void kx_large_fill(void *memory, size_t size)
{
	if (!memory)
		return;
	kx_large_advise(memory, size);
	/* since Linux 5.14; before, the pages come when they are written to */
	advise_whole(memory, size, (uintptr_t)sysconf(_SC_PAGESIZE), MADV_POPULATE_WRITE);
}

void *kx_large_calloc(size_t n, size_t size)
{
	void *memory = calloc(n, size);

	if (memory)
		kx_large_advise(memory, n * size);
	return memory;
}
