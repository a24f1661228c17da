// SPDX-License-Identifier: BSD-2-Clause
/* Where the missing symbols of a stripped binary can be had: advice for messages. */
#ifndef KX_DEBUG_PACKAGE_H
#define KX_DEBUG_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "binary/elf_image.h"
#include "binary/symbols.h"

#define KX_DEBUG_ADVICE 512

/* Whether all that was found is what the binary exports: it is stripped, and there is no debug
 * file. */
bool kx_symbols_are_exports(const struct kx_symbols *syms);

/*
 * A clause: "install nginx-dbgsym (of the distribution's debug archive; build id 7442...), or set
 * DEBUGINFOD_URLS". The package is the one that owns @path by `dpkg-query -S`, which may take two
 * seconds at most, if @fd (of the binary; negative: unknown) is the file that this path is for this
 * process, too; without one it is described. @elf may be NULL.
 */
void kx_debug_package_advice(const char *path, int fd, const struct kx_elf *elf,
			     char text[static KX_DEBUG_ADVICE]);

/* The package in a line of `dpkg-query -S`, in @name; false if the line has none. For tests. */
bool kx_debug_package_parse(const char *line, char *name, size_t size);

#endif
