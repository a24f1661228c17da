// SPDX-License-Identifier: BSD-2-Clause
/*
 * By which places a binary reaches functions that it imports: slots of its global offset table, which the dynamic linker
 * fills with their addresses, and the stubs of its procedure linkage table that jump there.
 */
#ifndef KX_IMPORT_SLOTS_H
#define KX_IMPORT_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "binary/elf_image.h"

struct kx_import_slot {
	uint64_t addr; /* ELF virtual address */
	unsigned name; /* index among the names */
	bool stub;     /* code that jumps to the function; else its address is stored there */
};

struct kx_import_slots {
	struct kx_import_slot *items; /* owned */
	size_t n, room;
	uint32_t imported; /* bit i: the binary imports the i-th name */
	uint32_t taken;	   /* bit i: its address is in data or is otherwise asked for */
};

/* Of the @n (32 at most) functions @names. Free with kx_import_slots_free in any case. Errors: -ENOMEM. */
int kx_import_slots_read(struct kx_elf *elf, const char *const *names, size_t n, struct kx_import_slots *out,
			 struct kx_err *err);
void kx_import_slots_free(struct kx_import_slots *s);

/* The slot or stub at @addr; NULL if there is none. */
const struct kx_import_slot *kx_import_slots_find(const struct kx_import_slots *s, uint64_t addr);

#endif
