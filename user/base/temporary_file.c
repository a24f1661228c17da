// SPDX-License-Identifier: BSD-2-Clause
#include "base/temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int kx_temporary_file(void)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];
	int fd;

	if (!dir || !*dir)
		dir = "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* Not every file system has O_TMPFILE. */
	if (snprintf(path, sizeof(path), "%s/kxray-XXXXXX", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

int kx_reserve_room(const char *beside, uint64_t bytes)
{
	const char *slash = strrchr(beside, '/');
	size_t length = slash ? (size_t)(slash - beside) + 1 : 0;
	char folder[4096];
	int fd, error;

	if (length >= sizeof(folder) - 1)
		return -ENAMETOOLONG;
	snprintf(folder, sizeof(folder), "%.*s.", (int)length, beside);
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	error = posix_fallocate(fd, 0, (off_t)bytes);
	if (!error)
		return fd;
	close(fd);
	return -error;
}
