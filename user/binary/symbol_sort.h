// SPDX-License-Identifier: BSD-2-Clause
/* The order of the symbols that were read from several tables. */
#ifndef KX_SYMBOL_SORT_H
#define KX_SYMBOL_SORT_H

#include "binary/symbol_sources.h"

/*
 * Sorts @raw by address, and at one address the name to show first; a name that several tables have there is left once, with
 * its true size.
 */
void kx_raw_symbols_sort(struct kx_raw_symbols *raw);

#endif
