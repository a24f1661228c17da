// SPDX-License-Identifier: BSD-2-Clause
/* For tests that build small targets: a folder for each test, files, shell commands. */
#ifndef KX_TEST_TARGET_H
#define KX_TEST_TARGET_H

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The test's folder, made by target_setup and removed by target_teardown. */
static char dir[64];

static inline int target_setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/kx_unit_XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

/* Runs a shell command in the folder; fails the test if it fails. */
static inline void __attribute__((format(printf, 1, 2))) sh(const char *fmt, ...)
{
	char text[4096];
	int n = snprintf(text, sizeof(text), "cd %s && ", dir);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	n = system(text);
	if (n)
		fail_msg("status %d of: %s", n, text);
}

static inline int target_teardown(void **state)
{
	char text[96];

	(void)state;
	snprintf(text, sizeof(text), "rm -rf %s", dir);
	return system(text);
}

static inline void write_file(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fputs(text, f) < 0, 0);
	assert_int_equal(fclose(f), 0);
}

/* Path of a file in the folder; valid until the fourth call after this one. */
static inline const char *in_dir(const char *name)
{
	static char paths[4][512];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* First line of a command's output, for reference values from binutils. */
static inline const char *line_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline const char *line_of(const char *fmt, ...)
{
	static char line[1024];
	char text[4096];
	int n = snprintf(text, sizeof(text), "cd %s && ", dir);
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	f = popen(text, "r");
	assert_non_null(f);
	line[0] = 0;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	line[strcspn(line, "\n")] = 0;
	pclose(f);
	return line;
}

/*
 * Starts a program and returns once it has printed a line, e.g. "ready", on its standard output.
 * End it with target_stop.
 */
static inline pid_t target_start(char *const argv[])
{
	char c = 0;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	while (read(fds[0], &c, 1) == 1 && c != '\n')
		;
	close(fds[0]);
	assert_int_equal(c, '\n');
	return pid;
}

static inline void target_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
