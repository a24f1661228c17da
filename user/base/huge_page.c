// SPDX-License-Identifier: BSD-2-Clause
#include "base/huge_page.h"

#include <stdlib.h>
#include <sys/mman.h>

void *kx_huge_page_alloc(void)
{
	void *page = aligned_alloc(KX_HUGE_PAGE, KX_HUGE_PAGE);

	/* small pages do as well, if more slowly */
	if (page)
		madvise(page, KX_HUGE_PAGE, MADV_HUGEPAGE);
	return page;
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + KX_HUGE_PAGE - 1) / KX_HUGE_PAGE * KX_HUGE_PAGE;
}

void *kx_huge_array_grow(void *items, size_t *room, size_t wanted, size_t item)
{
	/* Linux aligns mappings of whole huge pages, also where they are moved to */
	size_t old = whole_pages(*room * item), bytes;
	void *grown;

	if (__builtin_mul_overflow(wanted, item, &bytes) || bytes > SIZE_MAX - KX_HUGE_PAGE)
		return NULL;
	bytes = whole_pages(bytes);
	grown = old ? mremap(items, old, bytes, MREMAP_MAYMOVE)
		    : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (grown == MAP_FAILED)
		return NULL;
	if (bytes > KX_HUGE_PAGE) /* a small array may need a few small pages only */
		madvise(grown, bytes, MADV_HUGEPAGE);
	*room = bytes / item;
	return grown;
}

void kx_huge_array_free(void *items, size_t room, size_t item)
{
	if (items)
		munmap(items, whole_pages(room * item));
}
