// SPDX-License-Identifier: BSD-2-Clause
/* The USDT markers of one ELF file: its notes (usdt_notes.h), those of the same provider and name joined. */
#ifndef KX_USDT_MARKERS_H
#define KX_USDT_MARKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "binary/elf_image.h"
#include "binary/usdt_notes.h"

struct kx_usdt_place {
	uint64_t addr;	       /* ELF virtual address of the nop */
	uint64_t semaphore;    /* its offset in the file; 0: the marker has none */
	const char *arguments; /* as the note has them; borrowed from the file */
};

struct kx_usdt_marker {
	char *name; /* usdt:PROVIDER:NAME; owned */
	struct kx_usdt_place *places; /* by address */
	size_t nplaces;
};

struct kx_usdt_markers {
	struct kx_usdt_marker *items; /* by name */
	size_t count;
	struct kx_usdt_place *places; /* of all */
};

/*
 * The markers of @elf, which must outlive them; a file without any is no error. Those whose address is not in code are left
 * out. Errors: -EBADMSG (the notes are damaged), -ENOMEM.
 */
int kx_usdt_markers_read(struct kx_elf *elf, struct kx_usdt_markers *out, struct kx_err *err);
void kx_usdt_markers_free(struct kx_usdt_markers *m);

/* NULL if there is none of that name. */
const struct kx_usdt_marker *kx_usdt_markers_find(const struct kx_usdt_markers *m, const char *name);

/*
 * The arguments at @place of @elf, with the addresses of symbols looked up, so that each has a fetch for
 * the record of a marker or is unknown; returns how many.
 */
size_t kx_usdt_place_arguments(struct kx_elf *elf, const struct kx_usdt_place *place,
			       struct kx_usdt_argument out[KX_USDT_MAX_ARGUMENTS]);

#endif
