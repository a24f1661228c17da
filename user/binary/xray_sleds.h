// SPDX-License-Identifier: BSD-2-Clause
/*
 * The sled table (section xray_instr_map) of a binary built with -fxray-instrument.
 * Layout: llvm/lib/XRay/InstrumentationMap.cpp; 32-byte entries, sled address,
 * function address, kind, always-instrument, version; addresses are absolute
 * before version 2 and relative to their own place from then on.
 */
#ifndef KX_XRAY_SLEDS_H
#define KX_XRAY_SLEDS_H

#include <stddef.h>
#include <stdint.h>

#include "binary/elf_image.h"
#include "base/err.h"

enum kx_xray_kind {
	KX_XRAY_ENTRY = 0,
	KX_XRAY_EXIT = 1,
	KX_XRAY_TAIL = 2,
	KX_XRAY_ENTRY_ARGS = 3, /* entry that logs its first argument */
	KX_XRAY_CUSTOM = 4,
	KX_XRAY_TYPED = 5,
};

struct kx_xray_sled {
	uint64_t addr;     /* ELF virtual addresses */
	uint64_t function;
	uint8_t kind;      /* enum kx_xray_kind */
};

struct kx_xray_sleds {
	struct kx_xray_sled *sleds; /* by function, then address */
	size_t nsleds;
	uint64_t *functions;        /* by id - 1: one per run of equal function addresses */
	size_t nfunctions;
};

/* Sleds of the function at @addr; NULL if it has none. */
const struct kx_xray_sled *kx_xray_find(const struct kx_xray_sleds *x, uint64_t addr,
					size_t *count);

/* A binary without the section gives empty tables. Errors: -EBADMSG, -ENOMEM. */
int kx_xray_read(struct kx_elf *elf, struct kx_xray_sleds *out, struct kx_err *err);
void kx_xray_free(struct kx_xray_sleds *x);

#endif
