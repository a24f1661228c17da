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
