// SPDX-License-Identifier: BSD-2-Clause
/*
 * Code between the functions that have symbols: two thirds of a large library. All that planning needs of it is whether
 * its direct branches land where a function's entry probe may go, or between the last branch before a return
 * instruction and that. It is decoded only if some of its bytes, read as a branch from any place on, say the former;
 * where none does, decoding would find no such branch either. The latter is taken from the bytes alone: what only looks
 * like a branch costs no more than an exit that is not moved.
 */
#ifndef KX_GAP_H
#define KX_GAP_H

#include <stdbool.h>
#include <stdint.h>

#include "binary/symbols.h"
#include "plan/decode.h"

/*
 * Bits per byte of a kx_code_range, which other threads may set, too. Both words of the same 64 bytes of code are looked up
 * together.
 */
struct kx_gap_asked {
	struct {
		uint64_t entries; /* kx_plan_entry may ask whether a branch lands there */
		uint64_t exits;   /* ... kx_plan_move_exits */
	} *words;
};

/* Sets the bits in @asked of all addresses in @sym, its .cold part included, that may be asked for. @sym is decoded. */
void kx_gap_ask(const struct kx_code_range *r, const struct kx_symbol *sym, const struct kx_gap_asked *asked);

/*
 * Whether the bytes of [from, to), addresses in @r, may hold a direct branch or call to an address of asked as entries. If
 * not, those of exits that they may branch to are marked in r->entered.
 */
bool kx_gap_may_land(const struct kx_code_range *r, const struct kx_gap_asked *asked, uint64_t from, uint64_t to);

#endif
