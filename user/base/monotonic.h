// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_MONOTONIC_H
#define KX_MONOTONIC_H

/* CLOCK_MONOTONIC in seconds. */
double kx_monotonic_seconds(void);

/* CPU time of the calling thread in nanoseconds: for costs that other load does not change. */
double kx_thread_cpu_ns(void);

#endif
