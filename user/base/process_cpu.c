// SPDX-License-Identifier: BSD-2-Clause
#include "base/process_cpu.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
	unsigned long long user, system;
	char path[32], line[1024];
	const char *name_end;
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(line, 1, sizeof(line) - 1, f);
		fclose(f);
	}
	line[n] = 0;
	/* a name may have blanks and parentheses; proc_pid_stat(5): cutime and cstime are the fields 16 and 17 */
	name_end = strrchr(line, ')');
	if (!name_end || sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu", &user, &system) != 2)
		return -1;
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}
