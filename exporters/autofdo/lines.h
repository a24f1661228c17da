// SPDX-License-Identifier: BSD-2-Clause
/*
 * Source places of code addresses, with the functions inlined there, from an ELF file's
 * DWARF (its own, or a debug file found by build id or debuglink), through libdw.
 * Addresses are ELF virtual addresses.
 */
#ifndef KX_AUTOFDO_LINES_H
#define KX_AUTOFDO_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct kx_lines;

struct kx_line_function {
	const char *name;      /* linkage name if DWARF has one, else the short name */
	bool is_linkage_name;
	const char *file;      /* of its declaration; NULL if not known */
	uint32_t line;         /* of its declaration; 0 if not known */
	uint32_t user;         /* the caller's own; UINT32_MAX at first */
};

/* A function that contains an address (itself or by inlining), and the place in it. */
struct kx_line_level {
	struct kx_line_function *function;
	const char *file;
	uint32_t line; /* 0: none */
	uint32_t disc;
};

#define KX_LINE_LEVELS 64 /* deeper inlining is cut off */

/*
 * The file at @path must exist until kx_lines_close. Errors: -ENODATA (no DWARF), -ENOMEM, -EBADMSG, each with
 * a sentence. All strings live until kx_lines_close.
 */
int kx_lines_open(const char *path, struct kx_lines **out, struct kx_err *err);
void kx_lines_close(struct kx_lines *l);

/*
 * The place of @addr: @levels[0] is the function that the code belongs to, the last one the
 * innermost inlined one. Returns the number of levels; 0 if DWARF has no function or line there.
 */
size_t kx_lines_at(struct kx_lines *l, uint64_t addr, struct kx_line_level levels[KX_LINE_LEVELS]);

/*
 * Calls @row for every row of the line table in the code of the function at @addr, with its levels and the
 * bytes of code that follow it (0 for a row that shares its address with the next). A negative
 * errno from @row ends it and is returned. -ENOENT if there is no function.
 */
int kx_lines_rows(struct kx_lines *l, uint64_t addr,
		  int (*row)(void *ctx, const struct kx_line_level *levels, size_t nlevels,
			     uint64_t bytes),
		  void *ctx);

#endif
