// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/completion_words.h"

#include <ctype.h>
#include <dirent.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void kx_completion_add(const struct kx_completion *c, const char *word, const char *about)
{
	if (strncmp(word, c->word, strlen(c->word)) != 0)
		return;
	for (const char *p = word; *p; p++)
		if (iscntrl((unsigned char)*p))
			return;
	fprintf(c->to, "%s%s\t%s\n", c->before, word, about ? about : "");
}

/* The first @size - 1 bytes of a file of /proc/PID; false: there are none. */
static bool read_of_process(const char *pid, const char *file, char *text, size_t size)
{
	char path[300];
	FILE *from;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
	from = fopen(path, "re");
	if (!from)
		return false;
	n = fread(text, 1, size - 1, from);
	fclose(from);
	text[n] = 0;
	return n > 0;
}

void kx_completion_add_processes(const struct kx_completion *c, bool names)
{
	DIR *all = opendir("/proc");
	struct dirent *d;
	char comm[32], first[2];

	while (all && (d = readdir(all))) {
		if (!isdigit((unsigned char)*d->d_name) || atoi(d->d_name) == getpid() ||
		    !read_of_process(d->d_name, "cmdline", first, sizeof(first)) ||
		    !read_of_process(d->d_name, "comm", comm, sizeof(comm)))
			continue; /* a kernel thread, or it has ended */
		comm[strcspn(comm, "\n\t")] = 0;
		kx_completion_add(c, names ? comm : d->d_name, names ? NULL : comm);
	}
	if (all)
		closedir(all);
}

void kx_completion_add_users(const struct kx_completion *c)
{
	struct passwd *user;

	setpwent();
	while ((user = getpwent()))
		kx_completion_add(c, user->pw_name, NULL);
	endpwent();
}
