// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/each_process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tracer/keeper.h"

int kx_each_process(int (*each)(void *ctx, pid_t pid), void *ctx)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int code = 0;

	if (!proc)
		return -errno;
	while (!code && (entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);

		if (isdigit((unsigned char)entry->d_name[0]) && pid != getpid() &&
		    pid != kx_keeper_pid())
			code = each(ctx, pid);
	}
	closedir(proc);
	return code;
}
