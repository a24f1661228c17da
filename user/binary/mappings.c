// SPDX-License-Identifier: BSD-2-Clause
#include "binary/mappings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

/* The kernel writes a newline in a path as \012, and nothing else so. */
static void unescape_newlines(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (!strncmp(s, "\\012", 4)) {
			*to++ = '\n';
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = 0;
}

static bool parse(char *line, struct kx_mapping *m)
{
	unsigned int major, minor;
	char perms[5];
	int at = 0;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &m->start,
		   &m->end, perms, &m->offset, &major, &minor, &m->inode, &at) < 7 || !at)
		return false;
	m->writable = perms[1] == 'w';
	m->executable = perms[2] == 'x';
	m->shared = perms[3] == 's';
	m->device = makedev(major, minor);
	unescape_newlines(line + at);
	m->path = line + at;
	return true;
}

/* The process may end or exec at any time: a maps file that goes away is the process's end. */
int kx_mappings_each(pid_t pid, int (*each)(void *ctx, const struct kx_mapping *m), void *ctx)
{
	char path[32], *line = NULL;
	struct kx_mapping m;
	size_t size = 0;
	int code = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!code && getline(&line, &size, f) > 0)
		if (parse(line, &m))
			code = each(ctx, &m);
	free(line);
	fclose(f);
	return code;
}
