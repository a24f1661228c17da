// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where functions begin and end, by a binary's table for unwinding (.eh_frame_hdr, a sorted index of .eh_frame): it has
 * also functions without symbols, and cold parts as functions of their own. Format: Linux Standard Base Core, section
 * "Exception Frames".
 */
#ifndef KX_FRAME_TABLE_H
#define KX_FRAME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/elf_image.h"

struct kx_frame_table {
	struct kx_elf_section index, frames; /* borrowed from the image */
	size_t n;
};

/* False if there is none, or one in a form that is not known. @elf is borrowed. */
bool kx_frame_table_read(const struct kx_elf *elf, struct kx_frame_table *out);

/* The function [from, to), ELF virtual addresses, that holds @addr; false if none is known to. */
bool kx_frame_table_find(const struct kx_frame_table *t, uint64_t addr, uint64_t *from, uint64_t *to);

#endif
