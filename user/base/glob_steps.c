// SPDX-License-Identifier: BSD-2-Clause
#include "base/glob_steps.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

/* How long the bracket expression at @at is, 0 if it has no end and is just a bracket. */
static size_t bracket_length(const char *at)
{
	const char *p = at + 1;

	if (*p == '!' || *p == '^')
		p++;
	if (*p == ']')
		p++;
	for (; *p && *p != ']'; p++) {
		if (*p == '\\' && p[1]) {
			p++;
		} else if (*p == '[' && p[1] && strchr(":.=", p[1])) {
			char end[] = { p[1], ']', 0 };
			const char *found = strstr(p + 2, end);

			if (found)
				p = found + 1;
		}
	}
	return *p ? (size_t)(p + 1 - at) : 0;
}

/* Sets @bit for the characters that the one item @glob of @length bytes matches. */
static void add_item(struct kx_glob_steps *out, const char *glob, size_t length, uint64_t bit)
{
	char item[256];

	if (length >= sizeof(item))
		length = sizeof(item) - 1;
	memcpy(item, glob, length);
	item[length] = 0;
	for (unsigned c = 1; c < 256; c++) {
		char name[] = { (char)c, 0 };

		if (!fnmatch(item, name, 0))
			out->step[c] |= bit;
	}
}

int kx_glob_steps_compile(const char *glob, unsigned most, struct kx_glob_steps *out)
{
	unsigned items = 0;
	size_t length;

	memset(out, 0, sizeof(*out));
	for (const char *p = glob; *p; p += length) {
		length = 1;
		if (*p == '*') {
			out->loop |= 1ULL << items;
			continue;
		}
		if (*p == '\\' && !p[1])
			return -EINVAL;
		if (*p == '\\')
			length = 2;
		if (*p == '[')
			length = bracket_length(p);
		if (items == most)
			return -E2BIG;
		if (length)
			add_item(out, p, length, 2ULL << items);
		else
			out->step['['] |= 2ULL << items;
		length += !length;
		items++;
	}
	out->accept = 1ULL << items;
	return 0;
}

int kx_glob_steps_exactly(const char *text, size_t length, unsigned most, struct kx_glob_steps *out)
{
	memset(out, 0, sizeof(*out));
	if (length > most)
		return -E2BIG;
	for (size_t i = 0; i < length; i++)
		out->step[(unsigned char)text[i]] |= 2ULL << i;
	out->accept = 1ULL << length;
	return 0;
}

int kx_glob_steps_match(const struct kx_glob_steps *g, const char *text, size_t length)
{
	uint64_t states = 1;

	for (size_t i = 0; i < length; i++)
		states = (states << 1 & g->step[(unsigned char)text[i]]) | (states & g->loop);
	return (states & g->accept) != 0;
}
