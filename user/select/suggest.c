// SPDX-License-Identifier: BSD-2-Clause
#include "select/suggest.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/edit_distance.h"

#define NAME_LENGTH KX_EDIT_DISTANCE_LENGTH /* longer names are not suggested */
#define SUBSTRING_SCORE 8 /* worse than any edit distance that counts */

struct suggestion {
	unsigned score; /* lower is better */
	char name[NAME_LENGTH];
	const struct kx_suggest_source *source;
};

static unsigned score_of(const char *needle, const char *name)
{
	size_t ln = strlen(needle), lname = strlen(name);
	unsigned max = ln < 3 ? 0 : ln < 6 ? 1 : ln < 9 ? 2 : 3, d;
	const char *last;

	if (lname >= NAME_LENGTH)
		return UINT_MAX;
	if (!strcmp(needle, name))
		return 0;
	d = kx_edit_distance(needle, name, max);
	if (d != UINT_MAX)
		return d + 1;
	for (last = name + lname; last > name + 1 && strncmp(last - 2, "::", 2); last--)
		;
	if (last > name + 1) {
		d = kx_edit_distance(needle, last, max);
		if (d != UINT_MAX)
			return d + 2;
	}
	if (ln >= 3 && strcasestr(name, needle))
		return SUBSTRING_SCORE;
	return UINT_MAX;
}

static bool better(const struct suggestion *s, unsigned score, const char *name)
{
	size_t a = strlen(name), b = strlen(s->name);

	if (score != s->score)
		return score < s->score;
	return a != b ? a < b : strcmp(name, s->name) < 0;
}

/* The distance of the name of @s that is most similar to @needle, in @name; UINT_MAX if none is similar. */
static unsigned closest_name(const struct kx_symbol *s, const char *needle, char *name)
{
	char *readable = s->pretty != s->name ? kx_demangle_name(s->name) : NULL;
	const char *first = readable ? readable : s->name;
	unsigned best = score_of(needle, first);
	const char **alias;

	if (best != UINT_MAX)
		strcpy(name, first);
	for (alias = s->aliases; alias && *alias; alias++) {
		unsigned score = score_of(needle, *alias);

		if (score < best) {
			best = score;
			strcpy(name, *alias);
		}
	}
	free(readable);
	return best;
}

static void consider(struct suggestion *best, size_t *n, const struct kx_suggest_source *source,
		     const struct kx_symbol *s, const char *needle)
{
	char name[NAME_LENGTH];
	unsigned score = closest_name(s, needle, name);
	size_t i;

	if (score == UINT_MAX)
		return;
	score = score * 2 + !source->preferred;
	/* Overloads share a name. */
	for (i = 0; i < *n; i++)
		if (best[i].source == source && !strcmp(best[i].name, name))
			return;
	for (i = *n; i > 0 && better(&best[i - 1], score, name); i--)
		if (i < KX_SUGGESTIONS)
			best[i] = best[i - 1];
	if (i == KX_SUGGESTIONS)
		return;
	best[i].score = score;
	best[i].source = source;
	strcpy(best[i].name, name);
	if (*n < KX_SUGGESTIONS)
		(*n)++;
}

/* libc.so.6 -> libc.so*: the same on a machine with another version. */
static void module_glob(const struct kx_module *m, char *buf, size_t size)
{
	const char *so = strstr(m->name, ".so");

	if (so && so[3])
		snprintf(buf, size, "%.*s*", (int)(so + 3 - m->name), m->name);
	else
		snprintf(buf, size, "%s", m->name);
}

size_t kx_suggest(const struct kx_pattern *p, const struct kx_suggest_source *sources, size_t n,
		  char *buf, size_t size)
{
	struct suggestion best[KX_SUGGESTIONS];
	char needle[NAME_LENGTH], glob[NAME_MAX + 2];
	size_t found = 0, len = 0, i, k;
	const char *c;

	buf[0] = 0;
	for (c = p->glob; *c && len + 1 < sizeof(needle); c++)
		if (*c != '*' && *c != '?')
			needle[len++] = *c;
	needle[len] = 0;
	for (i = 0; len && i < n; i++)
		for (k = 0; k < sources[i].syms->count; k++)
			consider(best, &found, &sources[i], &sources[i].syms->items[k], needle);
	for (i = 0, len = 0; i < found && len < size; i++) {
		const struct kx_module *m = best[i].source->module;

		module_glob(m, glob, sizeof(glob));
		len += (size_t)snprintf(buf + len, size - len, "%s%s", i ? ", " : "", best[i].name);
		if (len < size && !m->is_main)
			len += (size_t)snprintf(buf + len, size - len, " in %s (-f '%s:%s')",
						m->name, glob, best[i].name);
	}
	return found;
}

/* How nearly @name is the @len bytes at @stem: 0 that or "lib" before it, 1 slips, 2 a part of it; -1 not. */
static int nearness(const char *name, const char *stem, size_t len)
{
	char part[NAME_LENGTH];
	size_t n = strlen(name);

	if (len >= sizeof(part) || !n)
		return -1;
	memcpy(part, stem, len);
	part[len] = 0;
	if (!strcasecmp(part, name) || (!strncmp(part, "lib", 3) && !strcasecmp(part + 3, name)))
		return 0;
	if (kx_edit_distance(name, part, n < 3 ? 0 : n < 8 ? 1 : 2) != UINT_MAX)
		return 1;
	return n >= 3 && strcasestr(part, name) ? 2 : -1;
}

int kx_suggest_module(const struct kx_pattern *p, const struct kx_module *m, char buf[KX_SUGGEST_PATTERN])
{
	const char *so = strstr(m->name, ".so"), *slash = strrchr(p->module, '/');
	char wanted[NAME_LENGTH], glob[NAME_MAX + 2];
	size_t len = so ? (size_t)(so - m->name) : strlen(m->name), n = 0;
	int near;

	for (const char *c = slash ? slash + 1 : p->module; *c && n + 1 < sizeof(wanted); c++)
		if (*c != '*' && *c != '?')
			wanted[n++] = *c;
	wanted[n] = 0;
	if (so && strstr(wanted, ".so"))
		*strstr(wanted, ".so") = 0; /* another version of the library */
	near = nearness(wanted, m->name, len);
	if (near < 0)
		return -1;
	module_glob(m, glob, sizeof(glob));
	snprintf(buf, KX_SUGGEST_PATTERN, "%s:%s", glob, p->glob);
	return near;
}

bool kx_is_interpreter(const struct kx_module *m)
{
	static const char *const names[] = { "python", "perl", "ruby", "node", "nodejs", "php", "lua", "luajit",
					     "java",   "bash", "dash", "zsh",  "ksh",    "sh",  "tclsh", "guile" };
	size_t len = strcspn(m->name, "0123456789.-");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && !strncmp(names[i], m->name, len))
			return true;
	return false;
}
