// SPDX-License-Identifier: BSD-2-Clause
/* What `kxray functions --json` prints: kxray-json(7), FUNCTIONS. */
#ifndef KX_FUNCTIONS_JSON_H
#define KX_FUNCTIONS_JSON_H

#include "base/err.h"
#include "cmd/function_windows.h"
#include "record/rate.h"
#include "select/select.h"

/* Prints the traced functions on standard output; @rates and @windows may be NULL. Errors: -ENOMEM, -EIO. */
int kx_functions_json(const struct kx_selection *sel, const struct kx_rates *rates, const struct kx_function_windows *windows,
		      struct kx_err *err);

#endif
