// SPDX-License-Identifier: BSD-2-Clause
/*
 * Source places of code addresses, with the functions inlined there, from an ELF file's
 * DWARF (its own, or a debug file found by build id or debuglink), through libdw.
 * Addresses are ELF virtual addresses.
 */
#ifndef KX_SOURCE_LINES_H
#define KX_SOURCE_LINES_H

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
/* The same for a file that is open as @fd, which stays the caller's; @path: where it lies, to find its debug file. */
int kx_lines_open_fd(int fd, const char *path, struct kx_lines **out, struct kx_err *err);
void kx_lines_close(struct kx_lines *l);

/*
 * Where the function with code at @addr is defined: file (as the compiler was given it, after its folder) and line of its
 * name, or of its first code where DWARF describes lines only. False if that is not known. Reads each unit of the
 * DWARF once.
 */
bool kx_lines_place(struct kx_lines *l, uint64_t addr, const char **file, uint32_t *line);

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
