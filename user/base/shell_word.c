// SPDX-License-Identifier: BSD-2-Clause
#include "base/shell_word.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr("_./:=@%+,-", *text))
			return false;
	return true;
}

char *kx_shell_word(const char *path)
{
	const char *before = *path == '-' ? "./" : "";
	char *out = NULL;
	size_t size;
	FILE *to;

	if (*path && is_plain(path))
		return asprintf(&out, "%s%s", before, path) < 0 ? NULL : out;
	to = open_memstream(&out, &size);
	if (!to)
		return NULL;
	fprintf(to, "'%s", before);
	for (; *path; path++)
		fputs(*path == '\'' ? "'\\''" : (char[]){ *path, 0 }, to);
	fputc('\'', to);
	if (!fclose(to))
		return out;
	free(out);
	return NULL;
}
