// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads a binary's function symbols from its own tables, .gnu_debugdata (MiniDebugInfo) and separate
 * debug files, unmerged; see symbols.h.
 */
#ifndef KX_SYMBOL_SOURCES_H
#define KX_SYMBOL_SOURCES_H

#include <stddef.h>
#include <stdint.h>

#include "binary/elf_image.h"
#include "base/err.h"

struct kx_raw_symbol {
	const char *name; /* in the arena */
	uint64_t addr;    /* ELF virtual address */
	uint64_t size;    /* bytes; 0 if not in the table */
	uint32_t file;    /* local symbols: number of the STT_FILE before it; 0 for others */
	uint8_t bind;     /* STB_* */
	uint8_t type;     /* STT_FUNC or STT_GNU_IFUNC */
};

struct kx_arena; /* strings that live as long as it does */

struct kx_raw_symbols {
	struct kx_raw_symbol *items;
	size_t count, capacity;
	struct kx_arena *arena;
	char source[512]; /* for messages: tables used, files refused */
	uint32_t nfiles;  /* STT_FILE symbols seen so far, in all tables */
};

/*
 * Function symbols defined in executable segments of @elf, without PLT entries, in no order.
 * .symtab and .dynsym; without .symtab also the debug file (by build id, else debuglink;
 * under @root first), else .gnu_debugdata, else what debuginfod has (debuginfod.h). A debug file with another build id or checksum is
 * refused. Errors: -ENOMEM. Free items and arena.
 */
int kx_raw_symbols_read(struct kx_elf *elf, const char *root, struct kx_raw_symbols *out,
			struct kx_err *err);

/* A copy of @s with @len bytes and a final 0; NULL if memory ran out. */
char *kx_arena_copy(struct kx_arena **arena, const char *s, size_t len);
/* Gives @more, which may be NULL, to @arena: only what is copied last is looked at for room. */
void kx_arena_join(struct kx_arena **arena, struct kx_arena *more);
void kx_arena_free(struct kx_arena *arena);

#endif
