// SPDX-License-Identifier: BSD-2-Clause
#include "base/cgroup_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup_mount.h"

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

bool kx_cgroup_folder(const char *groups, const char *mountinfo, const char *controller, char folder[KX_CGROUP_FOLDER_SIZE], size_t *mount)
{
	char root[PATH_MAX], group[PATH_MAX];

	if (!find_path(groups, controller, group) || kx_cgroup_mount(mountinfo, controller, root))
		return false;
	*mount = strlen(root);
	snprintf(folder, KX_CGROUP_FOLDER_SIZE, "%s%s", root, strcmp(group, "/") ? group : "");
	return true;
}

bool kx_cgroup_up(char *folder, size_t mount)
{
	char *end = strrchr(folder, '/');

	if (!end || (size_t)(end - folder) < mount)
		return false;
	*end = 0;
	return true;
}
