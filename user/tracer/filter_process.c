// SPDX-License-Identifier: BSD-2-Clause
/* The filters applied to a process by what /proc shows of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/each_number.h"
#include "tracer/filters.h"

static bool read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "re");
	bool read = f && fgets(line, size, f);

	if (f)
		fclose(f);
	if (read)
		line[strcspn(line, "\n")] = 0;
	return read;
}

struct process {
	const struct kx_filters *filters;
	pid_t pid;
};

static int thread_comm_passes(void *ctx, pid_t tid)
{
	const struct process *p = ctx;
	char path[64], comm[32];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)p->pid, (int)tid);
	return read_line(path, comm, sizeof(comm)) && kx_comm_glob_matches(&p->filters->comm, comm);
}

static bool comm_passes(const struct kx_filters *f, pid_t pid)
{
	struct process p = { f, pid };

	return kx_each_thread(pid, thread_comm_passes, &p) > 0;
}

static bool uid_passes(const struct kx_filters *f, pid_t pid)
{
	char path[64], line[256];
	unsigned uid = 0;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "Uid: %u", &uid) == 1;
	if (file)
		fclose(file);
	return found && uid == f->uid;
}

/* Whether the folder @path, below the mount point, or one that it is in is the control group. */
static bool is_inside(const struct kx_filters *f, char *path)
{
	char folder[4096 + 256];
	struct stat st;

	for (;;) {
		char *slash;

		snprintf(folder, sizeof(folder), "%s%s", f->cgroup_mount, path);
		if (!stat(folder, &st) && st.st_ino == f->cgroup)
			return true;
		slash = strrchr(path, '/');
		if (!slash)
			return false;
		*slash = 0;
	}
}

static bool cgroup_passes(const struct kx_filters *f, pid_t pid)
{
	char path[64], *line = NULL;
	bool passes = false;
	size_t room = 0;
	FILE *file;

	if (!*f->cgroup_mount)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	file = fopen(path, "re");
	while (file && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "0::/", 4))
			passes = is_inside(f, line + 3);
	}
	free(line);
	if (file)
		fclose(file);
	return passes;
}

bool kx_filters_pass_process(const struct kx_filters *f, pid_t pid)
{
	if (f->which & KX_FILTER_COMM && !comm_passes(f, pid))
		return false;
	if (f->which & KX_FILTER_UID && !uid_passes(f, pid))
		return false;
	return !(f->which & KX_FILTER_CGROUP) || cgroup_passes(f, pid);
}
