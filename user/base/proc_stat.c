// SPDX-License-Identifier: BSD-2-Clause
#include "base/proc_stat.h"

#include <stdio.h>
#include <string.h>

const char *kx_proc_stat(const char *path, int field, char buffer[KX_PROC_STAT_SIZE])
{
	FILE *f = fopen(path, "re");
	const size_t n = f ? fread(buffer, 1, KX_PROC_STAT_SIZE - 1, f) : 0;
	const char *p;

	if (f)
		fclose(f);
	buffer[n] = 0;
	p = strrchr(buffer, ')');
	for (int at = 2; p && at < field; at++) {
		p = strchr(p, ' ');
		p += p != NULL;
	}
	return p && *p ? p : NULL;
}
