// SPDX-License-Identifier: BSD-2-Clause
/* One ELF file, mapped: its segments, sections, build id, bytes of code. */
#ifndef KX_ELF_IMAGE_H
#define KX_ELF_IMAGE_H

#include <errno.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct kx_elf;

struct kx_elf_section {
	uint64_t addr;       /* virtual address, 0 if not allocated */
	uint64_t offset;     /* in the file */
	uint64_t size;       /* bytes */
	const uint8_t *data; /* NULL for NOBITS; borrowed from the image */
};

/*
 * Opens a 64-bit little-endian x86-64 ELF. Errors, each with a sentence: -ENOENT and
 * other open(2) errors, -ENOEXEC (not an ELF), -ENOTSUP (32-bit or another machine),
 * -EBADMSG (damaged).
 */
int kx_elf_open(const char *path, struct kx_elf **out, struct kx_err *err);
/* The same for a file that is open for reading as @fd, which stays the caller's. @path: its name. */
int kx_elf_open_fd(int fd, const char *path, struct kx_elf **out, struct kx_err *err);
/*
 * The same for @size bytes in memory (a decompressed .gnu_debugdata, a fuzzer's input), which
 * stay the caller's and must outlive the image. @name is used as the path in messages.
 */
int kx_elf_open_memory(const void *data, size_t size, const char *name, struct kx_elf **out,
		       struct kx_err *err);
void kx_elf_close(struct kx_elf *elf);
/* Whether such an error is a fact about the file's content, and not one about opening it. */
static inline bool kx_elf_error_is_content(int code)
{
	return code == -ENOEXEC || code == -ENOTSUP || code == -EBADMSG;
}

Elf *kx_elf_handle(struct kx_elf *elf); /* borrowed */
const char *kx_elf_path(const struct kx_elf *elf);
uint64_t kx_elf_entry(const struct kx_elf *elf); /* e_entry */

/* Bytes of [vaddr, vaddr+size) inside one executable PT_LOAD; NULL if not all there. */
const uint8_t *kx_elf_code(const struct kx_elf *elf, uint64_t vaddr, uint64_t size);
/* File offset of an address in an executable PT_LOAD; -ENOENT if there is none. */
int kx_elf_offset(const struct kx_elf *elf, uint64_t vaddr, uint64_t *offset);
/* Virtual address that file offset @offset is loaded at (any PT_LOAD); -ENOENT. */
int kx_elf_vaddr(const struct kx_elf *elf, uint64_t offset, uint64_t *vaddr);

/*
 * Bytes that are missing at the end of the file: what its headers describe reaches that far beyond
 * it. 0 for a complete file. (Separate debug files describe segments that they do not contain.)
 */
uint64_t kx_elf_missing(const struct kx_elf *elf);

/* Gives back the memory of the file's pages that have been read; they are read again when they are needed. */
void kx_elf_release_pages(const struct kx_elf *elf);

/* The whole file. */
const uint8_t *kx_elf_bytes(const struct kx_elf *elf, size_t *size);

/* Section @index, 1 and up as the file counts them; false past the last. @name is borrowed. */
bool kx_elf_section_at(const struct kx_elf *elf, size_t index, const char **name,
		       struct kx_elf_section *out);
/* First section of that name; false if there is none. */
bool kx_elf_get_section(const struct kx_elf *elf, const char *name, struct kx_elf_section *out);
/* True if @vaddr is in a section of stubs that jump to another module's functions (.plt and its kin). */
bool kx_elf_in_plt(const struct kx_elf *elf, uint64_t vaddr);

/*
 * The next section of @type (SHT_*) after *@scn, NULL at first: sets *@scn and returns its contents,
 * borrowed, translated by libelf. Skips sections without contents. NULL after the last.
 */
Elf_Data *kx_elf_next_of_type(struct kx_elf *elf, uint32_t type, Elf_Scn **scn);

/*
 * The name of the first symbol in the tables of @type (SHT_SYMTAB or SHT_DYNSYM) for which @wanted returns true,
 * borrowed; NULL if there is none. Symbols whose names cannot be read are passed over.
 */
const char *kx_elf_find_symbol(struct kx_elf *elf, uint32_t type,
			       bool (*wanted)(void *ctx, const Elf64_Sym *sym, const char *name),
			       void *ctx);

/* Build id as lower-case hex, "" if there is none. */
const char *kx_elf_build_id(const struct kx_elf *elf);

/* Every executable PT_LOAD, by index; false past the last. @data has its bytes in the file. */
bool kx_elf_exec_segment(const struct kx_elf *elf, size_t index, struct kx_elf_section *out);

#endif
