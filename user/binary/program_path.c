// SPDX-License-Identifier: BSD-2-Clause
#include "binary/program_path.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

char *kx_program_path(const char *name)
{
	const char *path = getenv("PATH");

	if (!*name || strchr(name, '/') || !access(name, F_OK))
		return strdup(name);
	while (path && *path) {
		size_t len = strcspn(path, ":");
		char *file;

		if (asprintf(&file, "%.*s/%s", len ? (int)len : 1, len ? path : ".", name) < 0)
			return NULL;
		if (is_program(file))
			return file;
		free(file);
		path += len + (path[len] == ':');
	}
	return strdup(name);
}
