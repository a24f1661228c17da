// SPDX-License-Identifier: BSD-2-Clause
#include "base/each_number.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int kx_each_number(const char *path, int (*each)(void *ctx, pid_t number), void *ctx)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int code = 0;

	if (!d)
		return -errno;
	while (!code && (e = readdir(d)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			code = each(ctx, (pid_t)atoi(e->d_name));
	closedir(d);
	return code;
}

int kx_each_thread(pid_t pid, int (*each)(void *ctx, pid_t tid), void *ctx)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return kx_each_number(path, each, ctx);
}
