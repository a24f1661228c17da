// SPDX-License-Identifier: BSD-2-Clause
/* What recording in process costs (kxray record --in-process). */
#ifndef KX_IN_PROCESS_COST_H
#define KX_IN_PROCESS_COST_H

#include "base/err.h"

/*
 * ns that the recorder takes for one entry or exit, in rings of this process's own: the least of some short runs. Errors:
 * mmap(2)'s; -EIO if it has not left a record for each call.
 */
int kx_in_process_cost(double *ns, struct kx_err *err);

#endif
