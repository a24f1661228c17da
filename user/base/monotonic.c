// SPDX-License-Identifier: BSD-2-Clause
#include "base/monotonic.h"

#include <time.h>

double kx_monotonic_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}
