// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_HUGE_PAGE_H
#define KX_HUGE_PAGE_H

#include <stddef.h>
#include <stdint.h>

#define KX_HUGE_PAGE (2u << 20) /* bytes, x86-64 */

/*
 * KX_HUGE_PAGE bytes for data that is used in any order: one huge page where the kernel has one to give, so that not each access
 * misses the processor's table of pages, too. NULL without memory; free with free().
 */
void *kx_huge_page_alloc(void);

/*
 * An array that may become large: one page fault for each 2 MB in place of 512. Makes room for at
 * least @wanted items of @item bytes (fewer than KX_HUGE_PAGE), and sets *@room; new ones are zero.
 * @items is NULL, and *@room 0, before the first call. NULL without memory, and the array stays as
 * it is. Free it with kx_huge_array_free.
 */
void *kx_huge_array_grow(void *items, size_t *room, size_t wanted, size_t item);
void kx_huge_array_free(void *items, size_t room, size_t item);

#endif
