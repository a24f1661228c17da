// SPDX-License-Identifier: BSD-2-Clause
#include "binary/translator.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *by_name(const char *name)
{
	/* the names of programs here, and valgrind's, are those of bpf/process.bpf.h, too */
	static const struct {
		const char *pattern, *name;
	} known[] = {
		{ "vgpreload_*", "valgrind" },
		{ "memcheck-*-linux", "valgrind" },
		{ "libdynamorio.so*", "DynamoRIO" },
		{ "pinbin", "Pin" },
		{ "qemu-x86_64*", "qemu" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!fnmatch(known[i].pattern, name, 0))
			return known[i].name;
	return NULL;
}

/* Of an executable file. */
static const char *by_path(const char *path)
{
	const char *name = strrchr(path, '/');

	return strstr(path, "/valgrind/") ? "valgrind" : by_name(name ? name + 1 : path);
}

const char *kx_modules_translator(const struct kx_modules *mods)
{
	const char *found = NULL;

	for (size_t i = 0; i < mods->count && !found; i++)
		found = mods->items[i].is_main ? by_path(mods->items[i].path) : by_name(mods->items[i].name);
	return found;
}

const char *kx_process_translator(pid_t pid)
{
	char link[32], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return NULL;
	path[n] = '\0';
	return by_path(path);
}
