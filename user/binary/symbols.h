// SPDX-License-Identifier: BSD-2-Clause
/*
 * The functions of one binary: from .symtab, .dynsym, .gnu_debugdata and
 * separate debug files (build id, debuglink), aliases joined, parts left out.
 */
#ifndef KX_SYMBOLS_H
#define KX_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/elf_image.h"
#include "base/err.h"

struct kx_symbol {
	const char *name;   /* as in the table (mangled); one of several aliases */
	const char *pretty; /* demangled, or the same pointer as name */
	const char **aliases; /* other names at this address; NULL-terminated or NULL */
	uint64_t addr;      /* ELF virtual address */
	uint64_t size;      /* bytes; never 0: taken from the next symbol where the table has none */
	bool is_ifunc;      /* STT_GNU_IFUNC: the code here only resolves the real one */
	/* the function's .cold part, 0 if none */
	uint64_t cold_addr, cold_size;
};

struct kx_symbols {
	struct kx_symbol *items; /* sorted by addr, one per address */
	size_t count;
	const char *source;      /* e.g. ".symtab", ".dynsym and .gnu_debugdata", "/usr/lib/debug/..." */
	void *storage;
	void (*release)(void *storage); /* NULL: it is symbols.c's */
};

/*
 * Functions of @elf. @root is a folder before which debug file paths are looked up
 * first ("/proc/PID/root"; NULL for none). A binary without function symbols is no error:
 * count is 0. Errors: -EBADMSG, -ENOMEM.
 */
int kx_symbols_read(struct kx_elf *elf, const char *root, struct kx_symbols *out,
		    struct kx_err *err);
void kx_symbols_free(struct kx_symbols *syms);

/* Function that holds @addr; NULL if none. */
const struct kx_symbol *kx_symbols_find(const struct kx_symbols *syms, uint64_t addr);

/* Function with that name (mangled) or alias; NULL if none. */
const struct kx_symbol *kx_symbols_find_name(const struct kx_symbols *syms, const char *name);

#endif
