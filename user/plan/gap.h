// SPDX-License-Identifier: BSD-2-Clause
/*
 * Code between the functions that have symbols: two thirds of a large library. All that planning needs of it is whether
 * its direct branches land where a function's entry probe may go. It is decoded only if some of its bytes, read as a
 * branch from any place on, say so; where none does, decoding would find no such branch either.
 */
#ifndef KX_GAP_H
#define KX_GAP_H

#include <stdbool.h>
#include <stdint.h>

#include "binary/symbols.h"
#include "plan/decode.h"

/*
 * Sets the bits in @asked (one per byte of @r, of which other threads may set others) of all addresses in @sym at which
 * kx_plan_entry may ask whether a branch lands there. @sym is decoded and begins in @r.
 */
void kx_gap_ask(const struct kx_code_range *r, const struct kx_symbol *sym, uint64_t *asked);

/* Whether the bytes of [from, to), addresses in @r, may hold a direct branch or call to an address of @asked. */
bool kx_gap_may_land(const struct kx_code_range *r, const uint64_t *asked, uint64_t from, uint64_t to);

#endif
