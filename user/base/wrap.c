// SPDX-License-Identifier: BSD-2-Clause
#include "base/wrap.h"

#include <string.h>

#include "base/display.h"

#define HANGING 2 /* columns that later lines are indented by more than the first */

/* Bytes of @line that fit @columns, up to a space; all of its first word, if that does not. */
static size_t fitting(const char *line, size_t size, size_t columns)
{
	size_t fits = kx_display_fit(line, size, columns), at = fits;
	const char *space;

	if (fits == size)
		return size;
	while (at && line[at] != ' ')
		at--;
	while (at && line[at - 1] == ' ')
		at--;
	if (at)
		return at;
	space = memchr(line + fits, ' ', size - fits);
	return space ? (size_t)(space - line) : size;
}

static void wrap_line(FILE *to, const char *line, size_t size, unsigned columns)
{
	size_t indent = 0, width = columns, n;

	while (indent < size && line[indent] == ' ')
		indent++;
	if (!columns || indent + HANGING >= columns || kx_display_width(line, size) <= columns) {
		fwrite(line, 1, size, to);
		return;
	}
	fwrite(line, 1, indent, to);
	line += indent;
	size -= indent;
	for (width -= indent;; width = columns - indent - HANGING) {
		n = fitting(line, size, width);
		fwrite(line, 1, n, to);
		while (n < size && line[n] == ' ')
			n++;
		line += n;
		size -= n;
		if (!size)
			return;
		fprintf(to, "\n%*s", (int)(indent + HANGING), "");
	}
}

void kx_wrap(FILE *to, const char *text, size_t size, unsigned columns)
{
	const char *end = text + size, *newline;

	for (; text < end; text = newline + 1) {
		newline = memchr(text, '\n', (size_t)(end - text));
		if (!newline)
			newline = end;
		wrap_line(to, text, (size_t)(newline - text), columns);
		if (newline < end)
			fputc('\n', to);
	}
}
