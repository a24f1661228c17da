// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory for the decoded code of large binaries, of one after the other. The kernel maps and clears each of its pages only
 * once: that takes as long as decoding what fills it.
 */
#ifndef KX_CODE_MEMORY_H
#define KX_CODE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/elf_image.h"

/* Zero bytes that are read behind what is known of each byte of a segment's code. */
#define KX_INFO_BEYOND 64

struct kx_code_memory {
	uint8_t *data; /* NULL: none */
	size_t size;   /* bytes */
	size_t used;   /* bytes of pieces; those behind are zero */
	bool taken;
};

/* Bytes that decoding @elf takes at most; no overflow: they are a multiple of the file's size. */
size_t kx_code_memory_need(const struct kx_elf *elf);

/* Reserves @size bytes, of which pages are used when they are written. Without memory nothing can be taken. Free with
 * kx_code_memory_free. */
void kx_code_memory_reserve(struct kx_code_memory *memory, size_t size);
void kx_code_memory_free(struct kx_code_memory *memory);

/*
 * Takes all of it for a binary that needs @need bytes, and clears what the one before has used, in up to @threads threads.
 * False if it is not so large or taken already. Not for several threads at once.
 */
bool kx_code_memory_take(struct kx_code_memory *memory, size_t need, size_t threads);
/* The next @size bytes, all zero; what kx_code_memory_need counts always fits. NULL if they do not. */
void *kx_code_memory_piece(struct kx_code_memory *memory, size_t size);
void kx_code_memory_give(struct kx_code_memory *memory);

#endif
