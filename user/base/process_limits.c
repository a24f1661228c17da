// SPDX-License-Identifier: BSD-2-Clause
#include "base/process_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

struct limit {
	__rlimit_resource_t resource;
	int code;
	unsigned shift;	  /* the text's unit: 2^shift */
	const char *text; /* with the limit */
};

static const struct limit limits[] = {
	{ RLIMIT_NOFILE, -EMFILE, 0,
	  "this process may have at most %llu open files (raise the limit, as in 'ulimit -n 4096')" },
	{ RLIMIT_AS, -ENOMEM, 10,
	  "this process may use at most %llu KiB of address space (raise the limit, as in 'ulimit -v "
	  "unlimited')" },
	{ RLIMIT_DATA, -ENOMEM, 10,
	  "this process may have at most %llu KiB of data (raise the limit, as in 'ulimit -d unlimited')" },
	{ RLIMIT_FSIZE, -EFBIG, 10,
	  "this process may write files of at most %llu KiB (raise the limit, as in 'ulimit -f unlimited')" },
};

bool kx_limits_explain(int code, char *why)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit limit;

		if (limits[i].code != code || getrlimit(limits[i].resource, &limit) ||
		    limit.rlim_cur == RLIM_INFINITY)
			continue;
		snprintf(why, KX_LIMIT_TEXT, limits[i].text,
			 (unsigned long long)limit.rlim_cur >> limits[i].shift);
		return true;
	}
	return false;
}

static bool may_open(size_t n)
{
	int *fds = calloc(n, sizeof(*fds)), first = open("/dev/null", O_RDONLY | O_CLOEXEC);
	bool full = first < 0 && errno == EMFILE;
	size_t count = 0;

	while (fds && first >= 0 && count < n && !full) {
		fds[count] = fcntl(first, F_DUPFD_CLOEXEC, 0);
		full = fds[count] < 0;
		count += !full;
	}
	while (count)
		close(fds[--count]);
	if (first >= 0)
		close(first);
	free(fds);
	return !full;
}

int kx_limits_try(size_t files, size_t bytes, char *why)
{
	/* volatile: else the compiler leaves the allocation out */
	void *volatile memory;

	if (!may_open(files) && kx_limits_explain(-EMFILE, why))
		return -EMFILE;
	memory = malloc(bytes);
	if (!memory && kx_limits_explain(-ENOMEM, why))
		return -ENOMEM;
	free(memory);
	return 0;
}
