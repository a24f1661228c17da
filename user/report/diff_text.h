// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_DIFF_TEXT_H
#define KX_DIFF_TEXT_H

#include "report/diff_view_internal.h"

/* What was compared, the table, and what it means. */
void kx_diff_print_text(const struct kx_diff_printer *p);

#endif
