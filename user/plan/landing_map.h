// SPDX-License-Identifier: BSD-2-Clause
/* For each byte of a binary's code: whether something may land there, and whether it must stay as it is. */
#ifndef KX_LANDING_MAP_H
#define KX_LANDING_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "binary/elf_image.h"

/* A PT_LOAD segment. */
struct kx_landing_segment {
	uint64_t addr, size; /* ELF virtual address; bytes in the file */
	const uint8_t *bytes;
	bool executable;
	/* a bit for each byte; NULL if it is not executable */
	uint64_t *lands, *kept, *owned;
};

/* The code that one entry of the unwind tables describes: a function, or its .cold part. */
struct kx_landing_part {
	uint64_t from, to;
};

/* Where a function goes, other than by a branch, outside of its symbol's code: a landing pad, an entry of a table. */
struct kx_landing_outside {
	uint64_t function, addr;
};

struct kx_landing_map {
	struct kx_elf *elf; /* borrowed */
	struct kx_landing_segment *segments; /* owned */
	size_t n;
	uint64_t code; /* bytes of executable segments */
	struct kx_landing_part *parts; /* by address; owned */
	size_t nparts, parts_room;
	struct kx_landing_outside *outside; /* by function; owned */
	size_t noutside, outside_room;
};

/* Nothing is marked. Free with kx_landing_map_free. Errors: -ENOMEM, -ENOEXEC (damaged). */
int kx_landing_map_new(struct kx_elf *elf, struct kx_landing_map *out, struct kx_err *err);
void kx_landing_map_free(struct kx_landing_map *m);

/* The executable segment that holds @addr; NULL if there is none. */
const struct kx_landing_segment *kx_landing_code(const struct kx_landing_map *m, uint64_t addr);

/* Bytes that are loaded at @addr, of which *@left are in the file; NULL if there are none. */
const uint8_t *kx_landing_bytes(const struct kx_landing_map *m, uint64_t addr, size_t *left);

/* Something may land at @addr; addresses outside of the code are passed over. */
void kx_landing_mark(struct kx_landing_map *m, uint64_t addr);
/* True outside of the code as well. */
bool kx_landing_is_marked(const struct kx_landing_map *m, uint64_t addr);

/* [addr, addr + size) must not be changed. */
void kx_landing_keep(struct kx_landing_map *m, uint64_t addr, uint64_t size);
bool kx_landing_is_kept(const struct kx_landing_map *m, uint64_t addr);

/* [addr, addr + size) is a function's code. What two functions own is kept. */
void kx_landing_own(struct kx_landing_map *m, uint64_t addr, uint64_t size);
bool kx_landing_is_owned(const struct kx_landing_map *m, uint64_t addr);

/* The part that holds @addr; NULL if there is none. */
const struct kx_landing_part *kx_landing_part(const struct kx_landing_map *m, uint64_t addr);

/* Add one, in any order, until kx_landing_sort. False: no memory. */
bool kx_landing_add_part(struct kx_landing_map *m, uint64_t from, uint64_t to);
bool kx_landing_add_outside(struct kx_landing_map *m, uint64_t function, uint64_t addr);
void kx_landing_sort(struct kx_landing_map *m);

/* Those of the function at @function; NULL if there is none. */
const struct kx_landing_outside *kx_landing_outside(const struct kx_landing_map *m, uint64_t function, size_t *n);

#endif
