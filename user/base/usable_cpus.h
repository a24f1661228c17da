// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_USABLE_CPUS_H
#define KX_USABLE_CPUS_H

#include <stddef.h>

/* On how many CPUs this process may run (taskset, cpusets), from 1 to @most: that many threads pay. */
size_t kx_usable_cpus(size_t most);

#endif
