// SPDX-License-Identifier: BSD-2-Clause
#include "base/fd_limit.h"

#include <dirent.h>
#include <sys/resource.h>

/* For what is opened and closed in between. */
#define SPARE 512

static size_t count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

void kx_fd_limit_raise(size_t more)
{
	struct rlimit limit;
	rlim_t wanted = more + SPARE + count_open();

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted;
	if (limit.rlim_max < wanted)
		limit.rlim_max = wanted;
	if (!setrlimit(RLIMIT_NOFILE, &limit) || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	/* without CAP_SYS_RESOURCE the hard limit is the end */
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}
