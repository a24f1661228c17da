// SPDX-License-Identifier: BSD-2-Clause
/* For fuzz targets whose input is an ELF file with symbols. */
#ifndef KX_TEST_FUZZ_BINARY_H
#define KX_TEST_FUZZ_BINARY_H

#include <string.h>

#include "binary/elf_image.h"
#include "binary/symbols.h"
#include "fuzz.h"

/* Calls @each with the input, if it is one. Returns 0. */
static inline int fuzz_binary(const uint8_t *data, size_t size,
			      void (*each)(struct kx_elf *elf, const struct kx_symbols *syms))
{
	struct kx_symbols syms;
	struct kx_elf *elf;
	/* exact allocation, so that AddressSanitizer finds any access outside */
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (kx_elf_open_memory(copy, size, "input", &elf, NULL) == 0) {
		if (kx_symbols_read(elf, NULL, &syms, NULL) == 0) {
			each(elf, &syms);
			kx_symbols_free(&syms);
		}
		kx_elf_close(elf);
	}
	free(copy);
	return 0;
}

#endif
