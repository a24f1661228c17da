// SPDX-License-Identifier: BSD-2-Clause
#include "base/process_cpu.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/proc_stat.h"

double kx_process_cpu_seconds(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return -1;
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

double kx_process_children_seconds(pid_t pid)
{
	char path[32], buffer[KX_PROC_STAT_SIZE];
	unsigned long long user, system;
	const char *times;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	times = kx_proc_stat(path, 16, buffer); /* cutime, cstime */
	if (!times || sscanf(times, "%llu %llu", &user, &system) != 2)
		return -1;
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}
