// SPDX-License-Identifier: BSD-2-Clause
/* The binaries of a trace, for the AutoFDO export: code, lines, call instructions. */
#ifndef KX_AUTOFDO_MODULES_H
#define KX_AUTOFDO_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/source_lines.h"
#include "base/err.h"
#include "trace/map_file.h"

struct kx_afdo_modules;

/*
 * @map (borrowed; NULL: no modules) names the files; a file whose build id differs from the
 * traced one is not used. @binary (or NULL) replaces the file of one module: the one with its
 * build id, else with its file name, else the first. Errors: those of kx_elf_open for @binary, -EINVAL (there is
 * no module), -ENOMEM.
 */
int kx_afdo_modules_open(const struct kx_map *map, const char *binary,
			 struct kx_afdo_modules **out, struct kx_err *err);
void kx_afdo_modules_close(struct kx_afdo_modules *m);

/* Lines of module @index; NULL if it has none or cannot be read. */
struct kx_lines *kx_afdo_lines(struct kx_afdo_modules *m, uint32_t index);
/* A sentence on the first file that cannot be used, and how many there are; NULL: none. */
const char *kx_afdo_modules_problem(const struct kx_afdo_modules *m, size_t *count);

/* The module whose code a run-time address is in, and its ELF virtual address there. */
bool kx_afdo_locate(struct kx_afdo_modules *m, uint64_t address, uint32_t *index,
		    uint64_t *vaddr);

/* True if the instruction at @vaddr is a return: the recorder may have a probe on it. */
bool kx_afdo_is_return(struct kx_afdo_modules *m, uint32_t index, uint64_t vaddr);

/*
 * False if the instruction before return address @vaddr in module @index certainly calls another
 * function than @callee: then @callee was reached by a tail call from there.
 */
bool kx_afdo_may_call(struct kx_afdo_modules *m, uint32_t index, uint64_t vaddr,
		      const struct kx_map_function *callee);

#endif
