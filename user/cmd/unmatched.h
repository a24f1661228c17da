// SPDX-License-Identifier: BSD-2-Clause
/* Why a pattern matches no call of a trace. */
#ifndef KX_UNMATCHED_H
#define KX_UNMATCHED_H

#include <stddef.h>

#include "trace/symbolizer.h"

/*
 * Writes to @text a sentence on a pattern that no called function has matched: that a function matches and was not
 * called, which names are similar, or which there are. It is not printable: names are as the programs have them.
 */
void kx_unmatched_explain(struct kx_symbolizer *names, const char *pattern, char *text, size_t size);

#endif
