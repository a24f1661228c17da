// SPDX-License-Identifier: BSD-2-Clause
/* The options of `kxray record`. */
#ifndef KX_RECORD_OPTIONS_H
#define KX_RECORD_OPTIONS_H

#include "cmd/options.h"

/* Groups of rows about a struct kx_record_arguments (record_arguments.h); ends with NULL options. */
extern const struct kx_option_group kx_record_options[];

#endif
