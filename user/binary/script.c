// SPDX-License-Identifier: BSD-2-Clause
#include "binary/script.h"

#include <stdio.h>
#include <string.h>

static const char *const blanks = " \t\r\n";

/* The base name of the word at @at, and what follows it. */
static const char *base_name(const char *at, size_t *length, const char **next)
{
	const char *name;

	at += strspn(at, blanks);
	*next = at + strcspn(at, blanks);
	name = memrchr(at, '/', (size_t)(*next - at));
	name = name ? name + 1 : at;
	*length = (size_t)(*next - name);
	return name;
}

bool kx_script_interpreter(const void *head, size_t size, char *name, size_t room)
{
	char line[KX_SCRIPT_HEAD];
	const char *word, *next;
	size_t length;

	*name = 0;
	if (size < 2 || memcmp(head, "#!", 2))
		return false;
	snprintf(line, sizeof(line), "%.*s", (int)(size < sizeof(line) ? size : sizeof(line)) - 2,
		 (const char *)head + 2);
	line[strcspn(line, "\n")] = 0;
	word = base_name(line, &length, &next);
	/* behind env its options, and variables that it sets, come before the program */
	for (bool env = length == 3 && !strncmp(word, "env", 3); env;) {
		next += strspn(next, blanks);
		env = *next == '-' || memchr(next, '=', strcspn(next, blanks));
		word = base_name(next, &length, &next);
	}
	if (length < room)
		snprintf(name, room, "%.*s", (int)length, word);
	return true;
}

bool kx_script_interpreter_of(const char *path, char *name, size_t room)
{
	char head[KX_SCRIPT_HEAD];
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(head, 1, sizeof(head), f) : 0;

	if (f)
		fclose(f);
	*name = 0;
	return n && kx_script_interpreter(head, n, name, room);
}
