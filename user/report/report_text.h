// SPDX-License-Identifier: BSD-2-Clause
/* A report as a table for people. */
#ifndef KX_REPORT_TEXT_H
#define KX_REPORT_TEXT_H

#include "report/report_view_internal.h"

void kx_view_table(const struct view *v);

#endif
