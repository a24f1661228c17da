// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/debugger.h"

#include <stdio.h>
#include <string.h>

#include "base/each_number.h"
#include "base/process_name.h"
#include "binary/mappings.h"

pid_t kx_tracer_of(pid_t pid, char *name, size_t size)
{
	char path[32], line[256];
	int tracer = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			break;
	if (f)
		fclose(f);
	if (tracer <= 0)
		return 0;
	kx_process_name(tracer, "?", name, size);
	return tracer;
}

pid_t kx_debugger_of(pid_t pid, char *name, size_t size)
{
	pid_t tracer = kx_tracer_of(pid, name, size);

	return tracer && strcmp(name, "strace") ? tracer : 0;
}

static int is_inode(void *ctx, const struct kx_mapping *m)
{
	return m->inode == *(const uint64_t *)ctx;
}

static int is_debugged_use(void *ctx, pid_t pid)
{
	char name[32];

	return kx_debugger_of(pid, name, sizeof(name)) && kx_mappings_each(pid, is_inode, ctx) == 1;
}

bool kx_debugger_uses(uint64_t inode)
{
	return kx_each_number("/proc", is_debugged_use, &inode) == 1;
}
