// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/completion_words.h"

#include <ctype.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/each_number.h"

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
static bool read_of_process(pid_t pid, const char *file, char *text, size_t size)
{
	char path[64];
	FILE *from;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	from = fopen(path, "re");
	if (!from)
		return false;
	n = fread(text, 1, size - 1, from);
	fclose(from);
	text[n] = 0;
	return n > 0;
}

struct processes {
	const struct kx_completion *c;
	bool names;
};

static int add_process(void *ctx, pid_t pid)
{
	const struct processes *p = ctx;
	char comm[32], first[2], number[16];

	if (pid == getpid() || !read_of_process(pid, "cmdline", first, sizeof(first)) ||
	    !read_of_process(pid, "comm", comm, sizeof(comm)))
		return 0; /* a kernel thread, or it has ended */
	comm[strcspn(comm, "\n\t")] = 0;
	snprintf(number, sizeof(number), "%d", (int)pid);
	kx_completion_add(p->c, p->names ? comm : number, p->names ? NULL : comm);
	return 0;
}

void kx_completion_add_processes(const struct kx_completion *c, bool names)
{
	struct processes p = { c, names };

	/* without /proc there are none */
	(void)kx_each_number("/proc", add_process, &p);
}

void kx_completion_add_users(const struct kx_completion *c)
{
	struct passwd *user;

	setpwent();
	while ((user = getpwent()))
		kx_completion_add(c, user->pw_name, NULL);
	endpwent();
}
