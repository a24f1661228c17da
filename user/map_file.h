// SPDX-License-Identifier: BSD-2-Clause
/*
 * trace.xray.map: a small ELF that llvm-xray takes as -instr_map. Sections
 * .text (NOBITS), xray_instr_map (version-0 sleds, absolute addresses),
 * .symtab, .strtab, .shstrtab, and .kxray.session (JSON, not allocated), which
 * also lists modules and functions in id order. Also reads XRay-instrumented
 * binaries as maps. Layout: specs notes 1.8, llvm-xray 14.0.6 and 19.1.7.
 */
#ifndef KX_MAP_FILE_H
#define KX_MAP_FILE_H

#include "err.h"
#include "session.h"

/*
 * Writes @map to @path through a temporary name in the same folder, renamed when
 * whole. Gives each module its own address range (map_base is filled in), ids in
 * the order of @map->functions. Errors: write(2)'s, rename(2)'s.
 */
int kx_map_write(const char *path, struct kx_map *map, struct kx_err *err);

/*
 * Reads a map: kxray's own, or any ELF with an xray_instr_map section (then
 * functions are named by its symbol table, module 0 is the file, session NULL).
 * Free with kx_map_free. Errors: -ENOENT, -EBADMSG (not a map: the text says why).
 */
int kx_map_read(const char *path, struct kx_map *map, struct kx_err *err);

/* Demangled name of function @id, or "#id" if the map has none; valid as long as the map. */
const char *kx_map_name(struct kx_map *map, uint32_t id);
/* Name of the module of function @id, or "". */
const char *kx_map_module_name(const struct kx_map *map, uint32_t id);

void kx_map_free(struct kx_map *map);

#endif
