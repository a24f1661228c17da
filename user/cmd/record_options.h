// SPDX-License-Identifier: BSD-2-Clause
/* The options of `kxray record`, and those of them that other commands that trace have as well. */
#ifndef KX_RECORD_OPTIONS_H
#define KX_RECORD_OPTIONS_H

#include "cmd/options.h"

/* Groups of rows about a struct kx_record_arguments (record_arguments.h); ends with NULL options. */
extern const struct kx_option_group kx_record_options[];

/* Rows about a struct kx_record_arguments: what to trace. `kxray top` has them, too. */
extern const struct kx_option kx_target_options[];
/* The values of --mechanism, from -1 on, and --kernel-mechanism, in the order of their enums. */
extern const char *const kx_mechanism_words[], *const kx_kernel_mechanism_words[];

#endif
