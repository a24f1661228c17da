// SPDX-License-Identifier: BSD-2-Clause
#include "base/process_cpu.h"

#include <time.h>

double kx_process_cpu_seconds(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return -1;
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}
