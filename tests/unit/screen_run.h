// SPDX-License-Identifier: BSD-2-Clause
/* Commands run on terminals of a given width or in pipes, and what they print there. Include after export_run.h. */
#ifndef KX_TEST_SCREEN_RUN_H
#define KX_TEST_SCREEN_RUN_H

#include <locale.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <wchar.h>

/*
 * Standard output and error of @command on a terminal of @columns, or with 0 columns its standard output in a pipe;
 * its exit status in *@status. The caller frees it.
 */
static inline char *output_of(int (*command)(int, char **), const char *const *argv, unsigned columns, int *status)
{
	struct winsize size = { .ws_row = 24, .ws_col = (unsigned short)columns };
	char *text = calloc(1, 1 << 20), *args[16];
	int ends[2] = { -1, -1 }, argc = 0;
	size_t used = 0;
	ssize_t n;
	pid_t child;

	assert_non_null(text);
	for (; argv[argc]; argc++) {
		assert_in_range(argc, 0, 14);
		args[argc] = strdup(argv[argc]);
	}
	args[argc] = NULL;
	fflush(stdout);
	if (!columns)
		assert_int_equal(pipe(ends), 0);
	child = columns ? forkpty(&ends[0], NULL, NULL, &size) : fork();
	assert_true(child >= 0);
	if (!child) {
		if (!columns)
			dup2(ends[1], STDOUT_FILENO);
		_exit(command(argc, args));
	}
	if (!columns)
		close(ends[1]);
	while ((n = read(ends[0], text + used, (1 << 20) - 1 - used)) > 0)
		used += (size_t)n;
	close(ends[0]);
	assert_int_equal(waitpid(child, status, 0), child);
	assert_true(WIFEXITED(*status));
	*status = WEXITSTATUS(*status);
	for (int i = 0; i < argc; i++)
		free(args[i]);
	return text;
}

/* Columns of a line up to its end, by the C library, without sequences of colors. */
static inline size_t line_columns(const char *line)
{
	mbstate_t state = { 0 };
	size_t columns = 0, n;
	wchar_t c;

	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	while (*line && *line != '\n' && *line != '\r') {
		if (*line == '\x1b') {
			line += strcspn(line, "m") + 1;
			continue;
		}
		n = mbrtowc(&c, line, 8, &state);
		if (n > 8 || wcwidth(c) < 0)
			fail_msg("a byte \\x%02x in '%.60s'", (unsigned char)*line, line);
		columns += (size_t)wcwidth(c);
		line += n;
	}
	return columns;
}

/* Fails if a line of @text is wider than @columns; returns the widest. */
static inline size_t widest_line(const char *text, size_t columns)
{
	size_t most = 0;

	for (const char *line = text; *line;) {
		size_t width = line_columns(line);

		if (width > columns)
			fail_msg("%zu columns instead of %zu: %.300s", width, columns, line);
		most = width > most ? width : most;
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return most;
}

#endif
