// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/frozen_group.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup_mount.h"
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
	char path[2 * PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return kx_file_contains(path, text);
}

/* The path of @groups' line ("ID:CONTROLLERS:PATH") for the hierarchy, in @group; false: it has none. */
static bool find_path(const char *groups, const char *controller, char group[PATH_MAX])
{
	FILE *file = fopen(groups, "re");
	bool found = false;
	char *line = NULL;
	size_t room = 0;

	while (file && !found && getline(&line, &room, file) > 0) {
		char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		*controllers++ = *path++ = 0;
		found = controller ? !strcmp(controllers, controller) : !*controllers;
		path[strcspn(path, "\n")] = 0;
		if (found)
			snprintf(group, PATH_MAX, "%s", path);
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* @folder: of the process's group; becomes the one to thaw. @mount: length of the root's. */
static bool find_frozen(const struct hierarchy *h, char *folder, size_t mount)
{
	char own[2 * PATH_MAX];

	snprintf(own, sizeof(own), "%s", folder);
	for (;;) {
		char *end = strrchr(folder, '/');

		if (contains(folder, h->file, h->frozen))
			return true;
		if (!end || (size_t)(end - folder) < mount)
			break;
		*end = 0;
	}
	/* by one that cannot be seen from here, as in a container */
	snprintf(folder, sizeof(own), "%s", own);
	return contains(folder, h->state, h->in_effect);
}

bool kx_frozen_group_by(const char *groups, const char *mountinfo, char *path, size_t size)
{
	for (size_t i = 0; i < sizeof(hierarchies) / sizeof(hierarchies[0]); i++) {
		const struct hierarchy *h = &hierarchies[i];
		char mount[PATH_MAX], group[PATH_MAX], folder[2 * PATH_MAX];

		if (!find_path(groups, h->controller, group) || kx_cgroup_mount(mountinfo, h->controller, mount))
			continue;
		snprintf(folder, sizeof(folder), "%s%s", mount, strcmp(group, "/") ? group : "");
		if (!find_frozen(h, folder, strlen(mount)))
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
