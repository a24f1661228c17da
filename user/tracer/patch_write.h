// SPDX-License-Identifier: BSD-2-Clause
/* Jumps and what was there before, written into the code of a process whose threads are stopped. */
#ifndef KX_PATCH_WRITE_H
#define KX_PATCH_WRITE_H

#include <stddef.h>
#include <stdint.h>

#define KX_PATCH_PAGE  4096ul
#define KX_PATCH_BYTES 5

enum kx_patch_result {
	KX_PATCH_WRITTEN,
	KX_PATCH_ALREADY, /* the new bytes are there */
	KX_PATCH_FOREIGN, /* neither the old ones nor the new ones */
	KX_PATCH_GONE,	  /* nothing is mapped there, or it cannot be written */
};

struct kx_patch_change {
	uint64_t at; /* the 5 bytes are in one page, or it is foreign */
	uint8_t from[KX_PATCH_BYTES], to[KX_PATCH_BYTES];
	enum kx_patch_result result;
};

/*
 * Makes @n changes, in order of address, through @mem (/proc/PID/mem) and sets their results.
 * Writes once for each page, and twice or more where a byte between two changes is 0xcc: that may
 * be another's breakpoint, which must not come back after it was removed.
 */
void kx_patch_write(int mem, struct kx_patch_change *changes, size_t n);

/* While the threads still run: lets the kernel copy the pages of @n changes, which takes longer
 * than to write them. */
void kx_patch_copy_pages(int mem, const struct kx_patch_change *changes, size_t n);

#endif
