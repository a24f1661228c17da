// SPDX-License-Identifier: BSD-2-Clause
#include "binary/debug_package.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/monotonic.h"

#define QUERY_SECONDS 2.0
#define NAME_SIZE     128

bool kx_symbols_are_exports(const struct kx_symbols *syms)
{
	return syms->count && !strcmp(syms->source, ".dynsym");
}

bool kx_debug_package_parse(const char *line, char *name, size_t size)
{
	size_t length = strcspn(line, ":, \n");

	if (!length || length >= size || line[length] == ' ' || line[length] == '\n' ||
	    !line[length])
		return false;
	snprintf(name, size, "%.*s", (int)length, line);
	return true;
}

/* dpkg-query -S with its output in @fd; its pid, or negative. */
static pid_t start_query(const char *const paths[2], int fd)
{
	const char *const argv[] = { "dpkg-query", "-S", "--", paths[0], paths[1], NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t pid;
	int code;

	sigemptyset(&none);
	if (posix_spawn_file_actions_init(&files))
		return -1;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&files);
		return -1;
	}
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&files, fd, STDOUT_FILENO);
	code = posix_spawnp(&pid, "dpkg-query", &files, &attributes, (char *const *)(uintptr_t)argv,
			    environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return code ? -1 : pid;
}

/* What comes from @fd until its end, a time limit, or @size bytes; returns how many. */
static size_t read_until(int fd, double deadline, char *text, size_t size)
{
	size_t used = 0;
	ssize_t n = 1;

	while (n > 0 && used + 1 < size) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		double left = deadline - kx_monotonic_seconds();

		if (left <= 0 || poll(&p, 1, (int)(left * 1000) + 1) <= 0)
			break;
		n = read(fd, text + used, size - 1 - used);
		used += n > 0 ? (size_t)n : 0;
	}
	text[used] = 0;
	return used;
}

/* The package that owns @path. */
static bool find_package(const char *path, char *name, size_t size)
{
	/* packages made before /lib became a link to /usr/lib list files there */
	const char *unmerged = strncmp(path, "/usr/", 5) ? path : path + 4;
	char text[4096];
	int ends[2];
	pid_t pid;

	if (path[0] != '/' || pipe2(ends, O_CLOEXEC))
		return false;
	pid = start_query((const char *const[]){ path, unmerged }, ends[1]);
	close(ends[1]);
	text[0] = 0;
	if (pid > 0) {
		read_until(ends[0], kx_monotonic_seconds() + QUERY_SECONDS, text, sizeof(text));
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	for (char *line = text; *line;
	     line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != 0))
		if (kx_debug_package_parse(line, name, size))
			return true;
	return false;
}

/* A process in a container has other files at the same paths. */
static bool is_here(const char *path, int fd)
{
	struct stat here, there;

	return fd < 0 || (!stat(path, &here) && !fstat(fd, &there) && here.st_dev == there.st_dev &&
			  here.st_ino == there.st_ino);
}

void kx_debug_package_advice(const char *path, int fd, const struct kx_elf *elf,
			     char text[static KX_DEBUG_ADVICE])
{
	const char *id = elf ? kx_elf_build_id(elf) : "", *urls = getenv("DEBUGINFOD_URLS");
	char package[NAME_SIZE], real[4096];
	const char *where = "";
	size_t used;

	/* the link /bin to /usr/bin, and links of alternatives, are in no list */
	if (!realpath(path, real))
		snprintf(real, sizeof(real), "%s", path);
	if (!is_here(path, fd) || !find_package(real, package, sizeof(package))) {
		snprintf(text, KX_DEBUG_ADVICE, "install its debug symbols");
		where = "Debian: the package's -dbgsym";
	} else if (!strcmp(package, "libc6")) {
		snprintf(text, KX_DEBUG_ADVICE,
			 "install libc6-dbg"); /* it has a name and archive of its own */
	} else {
		snprintf(text, KX_DEBUG_ADVICE, "install %s-dbgsym", package);
		where = "of the distribution's debug archive";
	}
	used = strlen(text);
	if (where[0] || id[0])
		used += (size_t)snprintf(text + used, KX_DEBUG_ADVICE - used, " (%s%s%s%s)", where,
					 where[0] && id[0] ? "; " : "", id[0] ? "build id " : "",
					 id);
	snprintf(text + used, KX_DEBUG_ADVICE - used, "%s",
		 urls && *urls ? "" : ", or set DEBUGINFOD_URLS");
}
