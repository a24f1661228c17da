// SPDX-License-Identifier: BSD-2-Clause
#include "binary/mappings.h"

#include <errno.h>
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

/* A number and the character behind it, from *@p on, which is moved behind both. By hand: sscanf takes as long as the kernel takes for the line. */
static bool take_number(const char **p, unsigned base, char behind, uint64_t *out)
{
	const char *from = *p;

	*out = 0;
	for (;; (*p)++) {
		const unsigned digit = (unsigned)(**p <= '9' ? **p - '0' : **p - 'a' + 10);

		if (digit >= base)
			break;
		*out = *out * base + digit;
	}
	return *p > from && *(*p)++ == behind;
}

/* proc(5): "start-end perms offset major:minor inode   path", all but the inode in hexadecimal. */
static bool parse(char *line, struct kx_mapping *m)
{
	uint64_t major, minor;
	const char *p = line;
	char *path;

	line[strcspn(line, "\n")] = 0;
	if (!take_number(&p, 16, '-', &m->start) || !take_number(&p, 16, ' ', &m->end) || strlen(p) < 5)
		return false;
	m->writable = p[1] == 'w';
	m->executable = p[2] == 'x';
	m->shared = p[3] == 's';
	p += 5;
	if (!take_number(&p, 16, ' ', &m->offset) || !take_number(&p, 16, ':', &major) || !take_number(&p, 16, ' ', &minor) ||
	    !take_number(&p, 10, ' ', &m->inode))
		return false;
	m->device = makedev((unsigned)major, (unsigned)minor);
	path = line + (p - line) + strspn(p, " ");
	unescape_newlines(path);
	m->path = path;
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
