// SPDX-License-Identifier: BSD-2-Clause
#include "base/process_arguments.h"

#include <stdio.h>
#include <stdlib.h>

bool kx_process_any_argument(pid_t pid, bool (*is)(const void *ctx, const char *argument), const void *ctx)
{
	char path[32], *argument = NULL;
	bool found = false;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	f = fopen(path, "re");
	while (f && !found && getdelim(&argument, &size, 0, f) > 0)
		found = is(ctx, argument);
	free(argument);
	if (f)
		fclose(f);
	return found;
}
