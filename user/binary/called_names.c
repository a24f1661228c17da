// SPDX-License-Identifier: BSD-2-Clause
#include "binary/called_names.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_name(const char *names, const char *name, size_t len)
{
	while (names && *names) {
		size_t n = strcspn(names, "/");

		if (n == len && !memcmp(names, name, n))
			return true;
		names += n + (names[n] == '/');
	}
	return false;
}

int kx_called_names_add(char **names, const char *more, const char *but)
{
	int any = 0;

	while (more && *more) {
		size_t len = strcspn(more, "/"), used = *names ? strlen(*names) : 0;

		if (len && used + len + 2 <= KX_CALLED_NAMES && !has_name(but, more, len) &&
		    !has_name(*names, more, len)) {
			char *grown = realloc(*names, used + len + 2);

			if (!grown)
				return -ENOMEM;
			sprintf(grown + used, "%s%.*s", used ? "/" : "", (int)len, more);
			*names = grown;
			any = 1;
		}
		more += len + (more[len] == '/');
	}
	return any;
}

/* The beginning of a file in /proc/@pid; "" if there is none. */
static void read_beginning(pid_t pid, const char *file, char *text, size_t size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	f = fopen(path, "re");
	text[f ? fread(text, 1, size - 1, f) : 0] = 0;
	if (f)
		fclose(f);
}

int kx_called_names_read(char **names, pid_t pid, const char *but)
{
	char text[PATH_MAX], *slash;
	int r;

	read_beginning(pid, "cmdline", text, sizeof(text));
	/* argv[0]; a server may show a title there: "nginx: worker process" */
	text[strcspn(text, ": ")] = 0;
	slash = strrchr(text, '/');
	r = kx_called_names_add(names, slash ? slash + 1 : text, but);
	if (r < 0)
		return r;
	read_beginning(pid, "comm", text, sizeof(text));
	text[strcspn(text, "\n")] = 0;
	r = kx_called_names_add(names, text, but);
	return r < 0 ? r : 0;
}
