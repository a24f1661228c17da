// SPDX-License-Identifier: BSD-2-Clause
/*
 * Large arrays in huge pages, where the kernel gives them (transparent_hugepage/enabled: always or madvise): what is reached at random in tens of megabytes
 * otherwise waits for page tables, in virtual machines most of all.
 */
#ifndef KX_LARGE_H
#define KX_LARGE_H

#include <stddef.h>

/* calloc(3); free with free(3). */
void *kx_large_calloc(size_t n, size_t size);
/* Of memory whose pages are not all in use yet; does nothing for less than some megabytes. */
void kx_large_advise(void *memory, size_t size);
/* The same, and gives it all its pages at once, where the kernel can: a write to each would be a page fault. NULL is ignored. */
void kx_large_fill(void *memory, size_t size);

#endif
