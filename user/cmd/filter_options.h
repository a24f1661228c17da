// SPDX-License-Identifier: BSD-2-Clause
/* The options by which report and export select calls: --time, --pid, --function, ... */
#ifndef KX_FILTER_OPTIONS_H
#define KX_FILTER_OPTIONS_H

#include <stdbool.h>

#include "calls/calls.h"
#include "cmd/options.h"

/* Rows about a struct kx_call_filter, whose lists they own: kx_options_free frees them. */
extern const struct kx_option kx_filter_options[];

/* Whether the filter leaves anything out. */
bool kx_filter_is_set(const struct kx_call_filter *f);

#endif
