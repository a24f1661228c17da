// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_DIFF_JSON_H
#define KX_DIFF_JSON_H

#include "report/diff_view_internal.h"

/* One JSON object. */
void kx_diff_print_json(const struct kx_diff_printer *p);

#endif
