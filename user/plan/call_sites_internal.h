// SPDX-License-Identifier: BSD-2-Clause
/* Shared by call_sites.c, call_functions.c and call_landings.c, and private to them. */
#ifndef KX_CALL_SITES_INTERNAL_H
#define KX_CALL_SITES_INTERNAL_H

#include "binary/frame_table.h"
#include "binary/import_slots.h"
#include "plan/call_sites.h"
#include "plan/decoded_function.h"

struct kx_call_sites {
	struct kx_elf *elf;
	struct kx_frame_table frames;
	struct kx_import_slots slots;
	bool fixed;		     /* the file's addresses are those of the process */
	struct kx_elf_section *code; /* sections of it */
	size_t ncode;
	struct kx_call_site *items;
	size_t n, room;
	struct kx_decoded_function *functions; /* those that hold a site */
	size_t nfunctions, function_room;
};

/*
 * The decoded function that holds @addr, valid until the next call; NULL if it is not known, or with *@error -ENOMEM.
 */
struct kx_decoded_function *kx_call_sites_function(struct kx_call_sites *s, uint64_t addr, int *error);

/* Marks what lands in the functions from elsewhere: branches of other functions, tables of switches, pointers in data.
 * -ENOMEM. */
int kx_call_sites_land(struct kx_call_sites *s);

#endif
