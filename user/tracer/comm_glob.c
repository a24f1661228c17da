// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/comm_glob.h"

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
static void add_item(struct kx_comm_glob *out, const char *glob, size_t length, uint32_t bit)
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

int kx_comm_glob_compile(const char *glob, struct kx_comm_glob *out, struct kx_err *err)
{
	unsigned items = 0;
	size_t length;

	memset(out, 0, sizeof(*out));
	if (!*glob)
		return kx_err_set(err, -EINVAL, "--comm takes a name or a glob such as 'redis*'");
	for (const char *p = glob; *p; p += length) {
		length = 1;
		if (*p == '*') {
			out->loop |= 1U << items;
			continue;
		}
		if (*p == '\\' && !p[1])
			return kx_err_set(err, -EINVAL,
					  "the glob '%s' of --comm ends in a backslash", glob);
		if (*p == '\\')
			length = 2;
		if (*p == '[')
			length = bracket_length(p);
		if (items == KX_COMM_MAX)
			return kx_err_set(err, -EINVAL,
					  "no name fits '%s': the kernel keeps %d bytes of a name; "
					  "write '%.*s' or a glob such as '%.*s*'",
					  glob, KX_COMM_MAX, KX_COMM_MAX, glob, KX_COMM_MAX - 1,
					  glob);
		if (length)
			add_item(out, p, length, 2U << items);
		else
			out->step['['] |= 2U << items;
		length += !length;
		items++;
	}
	out->accept = 1U << items;
	return 0;
}

bool kx_comm_glob_matches(const struct kx_comm_glob *g, const char *name)
{
	uint32_t states = 1;

	for (; *name; name++)
		states = (states << 1 & g->step[(unsigned char)*name]) | (states & g->loop);
	return states & g->accept;
}
