// SPDX-License-Identifier: BSD-2-Clause
/* The CPUs of this machine, as they are when a recording starts. */
#ifndef KX_CPUS_H
#define KX_CPUS_H

#include "base/err.h"

struct kx_cpus {
	unsigned n;	       /* highest possible CPU + 1 */
	unsigned char *online; /* n flags */
};

/* Errors: those of sysfs, -ENOMEM. */
int kx_cpus_read(struct kx_cpus *out, struct kx_err *err);
void kx_cpus_free(struct kx_cpus *cpus);

#endif
