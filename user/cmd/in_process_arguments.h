// SPDX-License-Identifier: BSD-2-Clause
/* Which options of `kxray record` go with --in-process. */
#ifndef KX_IN_PROCESS_ARGUMENTS_H
#define KX_IN_PROCESS_ARGUMENTS_H

#include "base/err.h"
#include "cmd/record_arguments.h"

/* Errors: -EINVAL, with the option that has to go. */
int kx_in_process_check_arguments(const struct kx_record_arguments *a, struct kx_err *err);

#endif
