// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_HUGE_PAGE_H
#define KX_HUGE_PAGE_H

#define KX_HUGE_PAGE (2u << 20) /* bytes, x86-64 */

/*
 * KX_HUGE_PAGE bytes for data that is used in any order: one huge page where the kernel has one to give, so that not each access
 * misses the processor's table of pages, too. NULL without memory; free with free().
 */
void *kx_huge_page_alloc(void);

#endif
