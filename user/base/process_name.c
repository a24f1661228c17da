// SPDX-License-Identifier: BSD-2-Clause
#include "base/process_name.h"

#include <stdio.h>
#include <string.h>

void kx_process_name(pid_t pid, const char *unknown, char *name, size_t size)
{
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (!f || !fgets(name, (int)size, f))
		snprintf(name, size, "%s", unknown);
	name[strcspn(name, "\n")] = 0;
	if (f)
		fclose(f);
}
