// SPDX-License-Identifier: BSD-2-Clause
#include "base/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"

/*
 * The colon that ends MODULE: the first that is neither half of "::" nor inside brackets,
 * as in "[[:digit:]]" and "f[abi:cxx11]". NULL if there is none.
 */
static const char *find_separator(const char *text)
{
	const char *p, *close;

	for (p = text; *p; p++) {
		if (*p == '[') {
			close = strchr(p + 1, ']');
			if (close && close[1] == ']')
				close++;
			if (close)
				p = close;
		} else if (*p == ':' && p[1] == ':') {
			p++;
		} else if (*p == ':') {
			return p;
		}
	}
	return NULL;
}

int kx_pattern_parse(const char *text, struct kx_pattern *out, struct kx_err *err)
{
	const char *colon = find_separator(text);
	const char *glob = colon ? colon + 1 : text;

	memset(out, 0, sizeof(*out));
	if (!*text)
		return kx_err_set(
			err, -EINVAL,
			"a pattern is empty; write [MODULE:]GLOB, such as 'libc.so*:mem*'");
	if (colon == text)
		return kx_err_set(err, -EINVAL,
				  "pattern '%s' names no module before ':'; write MODULE:GLOB, or "
				  "GLOB alone for the main executable",
				  text);
	if (!*glob)
		return kx_err_set(
			err, -EINVAL,
			"pattern '%s' names no function after ':'; write '%s*' for all of them",
			text, text);
	out->text = strdup(text);
	out->glob = strdup(glob);
	if (colon)
		out->module = strndup(text, (size_t)(colon - text));
	if (!out->text || !out->glob || (colon && !out->module)) {
		kx_pattern_free(out);
		return kx_err_set(err, -ENOMEM, "no memory for pattern '%s'", text);
	}
	if (colon && !strcmp(out->module, "kernel"))
		out->space = KX_PATTERN_KERNEL;
	else if (colon && !strcmp(out->module, "syscall"))
		out->space = KX_PATTERN_SYSCALL;
	else if (colon && !strcmp(out->module, "usdt"))
		out->space = KX_PATTERN_USDT;
	else if (colon && strchr(out->module, '/'))
		out->real_path = realpath(out->module, NULL);
	return 0;
}

void kx_pattern_free(struct kx_pattern *p)
{
	free(p->text);
	free(p->module);
	free(p->real_path);
	free(p->glob);
	memset(p, 0, sizeof(*p));
}

bool kx_patterns_in_space(const char *const *texts, size_t n, enum kx_pattern_space space)
{
	bool found = false;

	for (size_t i = 0; i < n && !found; i++) {
		struct kx_pattern p;

		if (kx_pattern_parse(texts[i], &p, NULL))
			continue;
		found = p.space == space;
		kx_pattern_free(&p);
	}
	return found;
}

bool kx_globs_match(const char *const *globs, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!fnmatch(globs[i], name, 0))
			return true;
	return false;
}

/* fnmatch(3), but names such as "operator[]" and "<[u8]>::len" also match literally. */
static bool glob_matches(const char *glob, const char *name)
{
	char literal[1024];
	size_t n = 0;

	if (!strcmp(glob, name) || !fnmatch(glob, name, 0))
		return true;
	if (!strchr(glob, '['))
		return false;
	for (; *glob && n + 2 < sizeof(literal); glob++) {
		if (*glob == '[')
			literal[n++] = '\\';
		literal[n++] = *glob;
	}
	literal[n] = 0;
	return !*glob && !fnmatch(literal, name, 0);
}

static bool glob_matches_one(const char *glob, const char *names)
{
	char name[256];

	while (names && *names) {
		size_t len = strcspn(names, "/");

		snprintf(name, sizeof(name), "%.*s", (int)len, names);
		if (glob_matches(glob, name))
			return true;
		names += len + (names[len] == '/');
	}
	return false;
}

bool kx_pattern_matches_file(const struct kx_pattern *p, const struct kx_pattern_file *f)
{
	if (p->space != KX_PATTERN_USER)
		return false;
	if (!p->module)
		return f->is_main;
	if (p->real_path && !strcmp(p->real_path, f->path))
		return true;
	if (strchr(p->module, '/'))
		return glob_matches(p->module, f->path);
	return glob_matches(p->module, f->name) || glob_matches_one(p->module, f->called);
}

/*
 * Removes the symbol version, or the last ".SUFFIX[.NUMBER]" of a compiler or linker; false if
 * none.
 */
static bool cut_suffix(char *name)
{
	static const char *const suffixes[] = { "isra",	    "constprop", "part",
						"lto_priv", "llvm",	 "localalias",
						"clone",    "simdclone", "__uniq" };
	char *at = strchr(name, '@'), *dot = strrchr(name, '.');
	size_t i;

	if (at && at != name) {
		*at = 0;
		return true;
	}
	if (!dot || dot == name)
		return false;
	if (isdigit((unsigned char)dot[1])) {
		char *number = dot;

		if (number[1 + strspn(number + 1, "0123456789")])
			return false;
		*number = 0;
		dot = strrchr(name, '.');
		*number = '.';
		if (!dot || dot == name)
			return false;
		*number = 0;
	}
	for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (!strcmp(dot + 1, suffixes[i])) {
			*dot = 0;
			return true;
		}
	return false;
}

/* Tries @name, then @name without its last suffix, and so on. */
static bool matches_linker_name(const char *glob, const char *name)
{
	char base[512];
	size_t len = strlen(name);

	if (glob_matches(glob, name))
		return true;
	if (len >= sizeof(base) || !strpbrk(name, ".@"))
		return false;
	memcpy(base, name, len + 1);
	while (cut_suffix(base))
		if (glob_matches(glob, base))
			return true;
	return false;
}

/* Tries the demangled name: whole, without arguments, without "[clone ...]". */
static bool matches_readable(const char *glob, const char *symbol, const char *pretty)
{
	const char *clone = strstr(pretty, " [clone ");
	char *name = kx_demangle_name(symbol);
	bool found = glob_matches(glob, pretty) || (name && glob_matches(glob, name));

	free(name);
	if (!found && clone) {
		char *whole = strndup(pretty, (size_t)(clone - pretty));

		found = whole && glob_matches(glob, whole);
		free(whole);
	}
	return found;
}

static bool matches_alias(const char *glob, const char *alias)
{
	char *pretty;
	bool found;

	if (matches_linker_name(glob, alias))
		return true;
	pretty = kx_demangle(alias);
	found = pretty && matches_readable(glob, alias, pretty);
	free(pretty);
	return found;
}

/* PROVIDER:MARKER of a marker's or a span's name; NULL if it is neither. "usdt::f" is a function of C++. */
static const char *behind_prefix(const char *name)
{
	const size_t length = strlen(KX_USDT_PREFIX);

	return !strncmp(name, KX_USDT_PREFIX, length) && name[length] != ':' ? name + length : NULL;
}

bool kx_is_marker_name(const char *name)
{
	return behind_prefix(name) && !strstr(name, KX_SPAN_MARK);
}

bool kx_pattern_matches_names(const struct kx_pattern *p, const struct kx_pattern_names *n)
{
	const char *const *alias;

	if (p->space == KX_PATTERN_USDT)
		return behind_prefix(n->symbol) && glob_matches(p->glob, behind_prefix(n->symbol));
	if (!strcmp(p->glob, "*") || matches_linker_name(p->glob, n->symbol))
		return true;
	if (n->pretty != n->symbol && matches_readable(p->glob, n->symbol, n->pretty))
		return true;
	for (alias = n->aliases; alias && *alias; alias++)
		if (matches_alias(p->glob, *alias))
			return true;
	return false;
}
