// SPDX-License-Identifier: BSD-2-Clause
#include "base/cgroup_mount.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* mountinfo has spaces and the like as three octal digits. */
static void unescape(char *path)
{
	char *to = path;

	for (; *path; path++) {
		unsigned value;

		if (*path == '\\' && sscanf(path + 1, "%3o", &value) == 1) {
			*to++ = (char)value;
			path += 3;
		} else {
			*to++ = *path;
		}
	}
	*to = 0;
}

/* Whether "cgroup SOURCE OPTIONS" has the controller as one of its options. */
static bool has_option(const char *type, const char *controller)
{
	char options[256];
	const size_t n = strlen(controller);

	if (sscanf(type, "cgroup %*s %255s", options) != 1)
		return false;
	for (const char *p = options; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (!strncmp(p, controller, n) && (p[n] == ',' || !p[n]))
			return true;
	return false;
}

int kx_cgroup_mount(const char *mountinfo, const char *controller, char mount[PATH_MAX])
{
	FILE *file = fopen(mountinfo, "re");
	char *line = NULL, *rest;
	size_t room = 0;
	bool found = false;

	if (!file)
		return -errno;
	while (!found && getline(&line, &room, file) > 0) {
		rest = strstr(line, " - ");
		found = rest && (controller ? has_option(rest + 3, controller) : !strncmp(rest, " - cgroup2 ", 11)) &&
			sscanf(line, "%*d %*d %*s %*s %4095s", mount) == 1;
	}
	free(line);
	fclose(file);
	if (!found)
		return -ENODEV;
	unescape(mount);
	return 0;
}
