// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_MONOTONIC_H
#define KX_MONOTONIC_H

/* CLOCK_MONOTONIC in seconds. */
double kx_monotonic_seconds(void);

#endif
