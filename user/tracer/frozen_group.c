// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/frozen_group.h"

#include <errno.h>
#include <stdio.h>

#include "base/cgroup_folder.h"
#include "base/kernel_files.h"
#include "tracer/remote_stop.h"

struct hierarchy {
	const char *controller; /* NULL: version 2 */
	const char *file, *frozen; /* what a group's file has that was frozen itself */
	const char *state, *in_effect; /* the same if one above it was */
};

static const struct hierarchy hierarchies[] = {
	{ NULL, "cgroup.freeze", "1", "cgroup.events", "frozen 1" },
	/* FREEZING as long as threads are on their way */
	{ "freezer", "freezer.self_freezing", "1", "freezer.state", "FR" },
};

static bool contains(const char *folder, const char *file, const char *text)
{
	char path[KX_CGROUP_FOLDER_SIZE + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return kx_file_contains(path, text);
}

/* @folder: of the process's group; becomes the one to thaw. @mount: length of the root's. */
static bool find_frozen(const struct hierarchy *h, char *folder, size_t mount)
{
	char own[KX_CGROUP_FOLDER_SIZE];

	snprintf(own, sizeof(own), "%s", folder);
	do {
		if (contains(folder, h->file, h->frozen))
			return true;
	} while (kx_cgroup_up(folder, mount));
	/* by one that cannot be seen from here, as in a container */
	snprintf(folder, sizeof(own), "%s", own);
	return contains(folder, h->state, h->in_effect);
}

bool kx_frozen_group_by(const char *groups, const char *mountinfo, char *path, size_t size)
{
	for (size_t i = 0; i < sizeof(hierarchies) / sizeof(hierarchies[0]); i++) {
		const struct hierarchy *h = &hierarchies[i];
		char folder[KX_CGROUP_FOLDER_SIZE];
		size_t mount;

		if (!kx_cgroup_folder(groups, mountinfo, h->controller, folder, &mount) || !find_frozen(h, folder, mount))
			continue;
		if (path)
			snprintf(path, size, "%s", folder);
		return true;
	}
	return false;
}

bool kx_frozen_group(pid_t tid, char *path, size_t size)
{
	char groups[32];

	snprintf(groups, sizeof(groups), "/proc/%d/cgroup", (int)tid);
	return kx_frozen_group_by(groups, "/proc/self/mountinfo", path, size);
}

int kx_frozen_group_check(pid_t pid, struct kx_err *err)
{
	char path[512];

	/* a main thread that has ended is in no group, or in the one that it ended in */
	return kx_frozen_group(kx_remote_view(pid), path, sizeof(path)) ?
		       kx_err_set(err, -EBUSY,
				  "process %d is in a frozen cgroup (%s): thaw it first, as its threads can make no system calls until then", (int)pid,
				  path) :
		       0;
}
