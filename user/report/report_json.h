// SPDX-License-Identifier: BSD-2-Clause
/* A report as one JSON object. */
#ifndef KX_REPORT_JSON_H
#define KX_REPORT_JSON_H

#include "report/report_view_internal.h"

void kx_view_json(const struct view *v);

#endif
