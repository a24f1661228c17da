// SPDX-License-Identifier: BSD-2-Clause
#include "base/kernel_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool kx_file_contains(const char *path, const char *text)
{
	size_t len = strlen(text), kept = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool found = false;
	char part[1 << 16];
	ssize_t n = 0;

	/* the end of a part may be the beginning of @text */
	while (fd >= 0 && !found && (n = read(fd, part + kept, sizeof(part) - kept)) > 0) {
		size_t size = kept + (size_t)n;

		found = memmem(part, size, text, len);
		kept = size < len - 1 ? size : len - 1;
		memmove(part, part + size - kept, kept);
	}
	if (fd >= 0)
		close(fd);
	return found;
}

int kx_read_number(const char *path, uint64_t *value)
{
	FILE *f = fopen(path, "re");
	int n;

	if (!f)
		return -errno;
	n = fscanf(f, "%" SCNu64, value);
	fclose(f);
	return n == 1 ? 0 : -EINVAL;
}

int kx_pmu_type(const char *pmu)
{
	char path[128];
	uint64_t type;
	int n = snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);

	n = n < (int)sizeof(path) ? kx_read_number(path, &type) : -ENAMETOOLONG;
	if (n)
		return n;
	return type <= INT_MAX ? (int)type : -EINVAL;
}

uint64_t kx_meminfo_bytes(const char *key)
{
	size_t len = strlen(key);
	uint64_t kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, len) && sscanf(line + len, ": %" SCNu64, &kib) == 1)
			break;
	fclose(f);
	return kib << 10;
}
