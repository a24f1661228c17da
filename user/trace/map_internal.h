// SPDX-License-Identifier: BSD-2-Clause
/* Inside the map: the layout of kxray's own sections, and what a map that was read owns. */
#ifndef KX_MAP_INTERNAL_H
#define KX_MAP_INTERNAL_H

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>

#include "trace/map_file.h"

/* One of .kxray.functions, little-endian. */
struct kx_map_row {
	uint64_t address; /* ELF virtual address inside its module */
	uint64_t size;	  /* bytes */
	uint32_t module;  /* index into the session's modules */
	uint32_t name;	  /* offset in .kxray.names */
};
_Static_assert(sizeof(struct kx_map_row) == 24, "a function is 24 bytes");

/* One of .kxray.lines, little-endian. */
struct kx_map_line {
	uint32_t file; /* offset in .kxray.files */
	uint32_t line; /* 0: not known */
};
_Static_assert(sizeof(struct kx_map_line) == 8, "a place is 8 bytes");

/* Functions and callers by module and address: map_callers.c. */
struct kx_map_index {
	size_t n;
	struct kx_map_at {
		const struct kx_map_function *function;
		char *name; /* NULL: not demangled yet */
	} entries[];
};

/* What a map owns itself, beyond what its caller has set. */
struct kx_map_storage {
	bool owns_lists; /* modules, functions and labels are the reader's */
	bool names_only;
	Elf *elf;	 /* kxray's own maps: functions' symbols are in it */
	json_t *root;	 /* modules' strings and the session belong to it */
	char *text;	 /* binaries: functions' symbols */
	char *file_name, *file_path, *file_build_id; /* of module 0 of a binary */
	char *names;				     /* cache of demangled names, NUL-terminated */
	size_t names_len;
	uint32_t *name_at; /* by index: offset in names + 1, or 0 */
	struct kx_map_index *index; /* NULL: not needed yet */
	void *unknown;	   /* search tree of "#id" */
};

/* The storage of @map, allocated on first use; NULL if memory runs out. */
struct kx_map_storage *kx_map_storage_of(struct kx_map *map);

struct kx_map_strings;
/*
 * map_places.c: the rows of @map's functions (*@rows, to be freed; NULL if no place is known), with files added to
 * @files. Errors: -ENOMEM, -E2BIG.
 */
int kx_map_lines_make(const struct kx_map *map, struct kx_map_line **rows, struct kx_map_strings *files);
/* Takes @map's places from these sections, which may be missing. Returns NULL, or why they are not valid. */
const char *kx_map_lines_read(struct kx_map *map, const Elf_Data *rows, const Elf_Data *files);

/*
 * Fills @map from the binary @elf, whose sled table is @scn. Returns NULL, or why it is not a map;
 * @map's storage, which must exist, then owns what has been filled in.
 */
const char *kx_map_read_binary(struct kx_map *map, Elf *elf, Elf_Scn *scn, const char *path);

#endif
