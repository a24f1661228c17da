// SPDX-License-Identifier: BSD-2-Clause
/*
 * trace.xray.map: what it takes to understand a trace on another machine. It is a small ELF file,
 * which llvm-xray accepts as -instr_map. Sections .text (NOBITS), xray_instr_map (version-0 sleds,
 * absolute addresses), .symtab, .strtab, .shstrtab, and kxray's own, which are not allocated:
 *
 *   .kxray.session    JSON: {"kxray":1, "session":{...},
 *                     "modules":[{"name","path","build_id","load_bias","map_base"}, ...]}
 *                     The session describes the recording: command line, host, clock, processes, losses.
 *   .kxray.functions  24 bytes for each function in id order, little-endian: u64 address, u64
 *                     size, u32 module (from 0 on), u32 offset of its name
 *   .kxray.names      symbols as the programs have them, NUL-terminated; the first is ""
 *   .kxray.lines      8 bytes for each function in id order: u32 offset of its file in .kxray.files, u32
 *                     line; a line of 0: not known. Empty if no function's is known
 *   .kxray.files      paths of source files, each once, NUL-terminated; the first is ""
 *   .kxray.callers    as .kxray.functions: functions that were not traced themselves and called traced ones
 *                     (record --callers), in the order of module and address
 *
 * A function's id is its place in the list, from 1 on. Addresses in JSON are hexadecimal strings
 * ("0x401000"), because JSON readers round numbers over 53 bits.
 *
 * XRay-instrumented binaries are read as maps, too. Layout: llvm-xray 14.0.6 and 19.1.7.
 */
#ifndef KX_MAP_FILE_H
#define KX_MAP_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define KX_MAP_SESSION_SECTION	 ".kxray.session"
#define KX_MAP_FUNCTIONS_SECTION ".kxray.functions"
#define KX_MAP_NAMES_SECTION	 ".kxray.names"
#define KX_MAP_LINES_SECTION	 ".kxray.lines"
#define KX_MAP_FILES_SECTION	 ".kxray.files"
#define KX_MAP_CALLERS_SECTION	 ".kxray.callers"

/* A function as the map stores it; its id is its index + 1. */
struct kx_map_function {
	const char *symbol; /* mangled name as the symbol table has it */
	uint64_t address;   /* ELF virtual address inside its module */
	uint32_t module;    /* index into modules */
	uint32_t size;	    /* bytes; UINT32_MAX: that or more. 24 bytes a function, since maps have 100,000s */
};

/* What kx_map_read_names keeps of a function. */
struct kx_map_label {
	uint32_t symbol; /* offset in kx_map.symbols */
	uint32_t module; /* index into modules */
};

static inline uint32_t kx_map_function_size(uint64_t bytes)
{
	return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

struct kx_map_module {
	const char *name;     /* file name, e.g. libc.so.6 */
	const char *path;     /* as the process had it mapped */
	const char *build_id; /* lower-case hex, "" if none */
	uint64_t load_bias;   /* run-time address minus ELF virtual address; 0 if unknown */
	uint64_t map_base; /* first address of the module's range in the map; set by the writer */
	const char *called;   /* other names that patterns may use for it: binary/called_names.h; or NULL */
};

/* Where a function is defined in source. */
struct kx_map_place {
	const char *file; /* path as the compiler knew it; NULL: not known */
	uint32_t line;
};

struct kx_map {
	struct kx_map_module *modules;
	size_t nmodules;
	struct kx_map_function *functions; /* NULL after kx_map_read_names of kxray's own map */
	size_t nfunctions;
	struct kx_map_label *labels; /* in place of functions */
	const char *symbols;
	const struct kx_map_place *places; /* by index, for the writer; NULL in a map that was read, see kx_map_get_place */
	const struct kx_map_line *lines; /* places of a map that was read, in the file: map_places.c; NULL: none */
	const char *files;
	struct kx_map_function *callers; /* not traced; by module and address */
	size_t ncallers;
	json_t *session; /* an object, see record/session_info.h; may be NULL */
	void *storage;	 /* of map_read.c; NULL in a map made by hand */
	bool names_once; /* each name is asked for about once: kx_map_name keeps the last one only, not some megabytes */
};

/*
 * Writes @map to @path through a temporary name in the same folder, renamed when
 * whole. Gives each module its own address range (map_base is filled in), ids in
 * the order of @map->functions. Symbols lose their version ("@@GLIBC_2.2.5") and
 * get '_' for characters that llvm-xray would not escape; .kxray.names keeps them whole.
 * Errors: -EINVAL (not a regular file, or a function names no module), -EISDIR, -E2BIG,
 * -ENOMEM, open(2)'s, write(2)'s, rename(2)'s.
 */
int kx_map_write(const char *path, struct kx_map *map, struct kx_err *err);

/*
 * Reads a map: kxray's own, or any 64-bit ELF with an xray_instr_map section (then
 * functions are named by its symbol table, module 0 is the file, session NULL).
 * All that @map points to is then owned by it. Free with kx_map_free. kxray's own maps stay
 * mapped until then, so the file must not be changed in place (replacing it does no harm).
 * Errors: -ENOENT and other open(2) errors, -ENOMEM, -EBADMSG (not a map: the text
 * says why); @map is then empty.
 */
int kx_map_read(const char *path, struct kx_map *map, struct kx_err *err);
/*
 * The same for a reader that only asks for names, modules and places of functions: a third of the memory. The callers of
 * the map are left out.
 */
int kx_map_read_names(const char *path, struct kx_map *map, struct kx_err *err);

/*
 * Demangled name of function @id, or "#id" if the map has none; valid until the next call,
 * since only some megabytes of names are kept. For one thread at a time; works for maps that
 * were not read too, if storage is NULL.
 */
const char *kx_map_name(struct kx_map *map, uint32_t id);
/*
 * Prefetches function @id for a kx_map_name soon after: what tells where its name is, or with @text
 * the name itself, which needs the other (so call it a second time).
 */
void kx_map_prefetch(const struct kx_map *map, uint32_t id, bool text);
/* The symbol of function @id as the map has it; NULL if there is none, "" if it has no name. */
const char *kx_map_symbol(const struct kx_map *map, uint32_t id);
/* The module of function @id, as index into modules; at least nmodules: not known. */
uint32_t kx_map_module(const struct kx_map *map, uint32_t id);
/* Name of the module of function @id, or "". */
const char *kx_map_module_name(const struct kx_map *map, uint32_t id);

/* Where function @id is defined; false, and a file of NULL, if the map does not know. */
bool kx_map_get_place(const struct kx_map *map, uint32_t id, struct kx_map_place *out);
/* Whether the place of any function is known. */
bool kx_map_has_places(const struct kx_map *map);

/*
 * Demangled name of the function, traced or one of the callers, that contains ELF address @address of the module with
 * this index; NULL if the map has none. Valid until the map is freed. For one thread at a time.
 */
const char *kx_map_name_at(struct kx_map *map, uint32_t module, uint64_t address);

/* Frees what kx_map_read and kx_map_name have allocated, not what the caller put in. */
void kx_map_free(struct kx_map *map);

#endif
