// SPDX-License-Identifier: BSD-2-Clause
/* Functions for completion: symbols are read and compared, no function is decoded or probed. */
#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/pattern.h"
#include "binary/elf_image.h"
#include "binary/modules.h"
#include "binary/program_path.h"
#include "binary/symbols.h"
#include "cmd/completion_words.h"
#include "select/pattern_matches.h"
#include "select/select.h"
#include "trace/map_file.h"

struct names {
	char **items;
	size_t n, room;
};

static void add_name(struct names *names, const char *name, size_t length)
{
	char *copy = length ? strndup(name, length) : NULL;

	if (copy && !KX_ARRAY_RESERVE(names->items, names->room, names->n))
		names->items[names->n++] = copy;
	else
		free(copy);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Prints each name once, and frees them. */
static void print_names(const struct kx_completion *c, struct names *names)
{
	if (names->n)
		qsort(names->items, names->n, sizeof(*names->items), by_name);
	for (size_t i = 0; i < names->n; i++)
		if (!i || strcmp(names->items[i], names->items[i - 1]) != 0)
			kx_completion_add(c, names->items[i], NULL);
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i]);
	free(names->items);
}

/* How much of a name can be typed as it is: a demangled one without its argument list. 0: nothing.
 */
static size_t typed_length(const char *name)
{
	size_t n =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:~$");

	return name[n] && name[n] != '(' && name[n] != '@' ? 0 : n;
}

/* The symbols of one module that @pattern matches and whose name begins with @start. */
static void add_symbols(struct names *names, struct kx_select_module *m, pid_t pid,
			const struct kx_pattern *pattern, const char *start)
{
	if (!m->provider->symbols(m, pid, NULL)) {
		for (size_t i = 0; i < m->syms.count; i++) {
			const struct kx_symbol *s = &m->syms.items[i];
			const char *name = s->pretty;

			if (!kx_pattern_matches_symbol(pattern, s))
				continue;
			if (!typed_length(name) || strncmp(name, start, strlen(start)) != 0)
				name = s->name;
			if (!strncmp(name, start, strlen(start)))
				add_name(names, name, typed_length(name));
			for (const char **alias = s->aliases; alias && *alias; alias++)
				if (!strncmp(*alias, start, strlen(start)))
					add_name(names, *alias, typed_length(*alias));
		}
	}
	kx_symbols_free(&m->syms);
	kx_usdt_markers_free(&m->markers);
	if (m->elf)
		kx_elf_close(m->elf);
	if (m->fd >= 0)
		close(m->fd);
}

static int read_modules(pid_t pid, const char *binary, struct kx_modules *mods)
{
	char *path;
	int rc;

	if (pid)
		return kx_modules_of_process(pid, mods, NULL);
	path = binary ? kx_program_path(binary) : NULL;
	rc = path ? kx_modules_of_file(path, mods, NULL) : -1;
	free(path);
	return rc;
}

/* The names of modules, to be continued with a function. */
static void add_modules(const struct kx_completion *c, const struct kx_modules *mods)
{
	struct names names = { 0 };

	add_name(&names, "kernel:", 7);
	add_name(&names, "syscall:", 8);
	add_name(&names, "usdt:", 5);
	for (size_t i = 0; i < mods->count; i++) {
		char text[256];

		if (!mods->items[i].is_main && typed_length(mods->items[i].name))
			add_name(&names, text,
				 (size_t)snprintf(text, sizeof(text),
						  "%.250s:", mods->items[i].name));
	}
	print_names(c, &names);
}

/* A pattern that begins with the completed word. */
struct beginning {
	struct kx_pattern pattern; /* the word and a '*' */
	const char *function;	   /* where the function's name begins in the word */
};

static bool parse_beginning(const struct kx_completion *c, struct beginning *b)
{
	char *text = NULL;
	bool valid =
		asprintf(&text, "%s*", c->word) >= 0 && !kx_pattern_parse(text, &b->pattern, NULL);

	if (valid)
		b->function = c->word + strlen(text) - strlen(b->pattern.glob);
	free(text);
	return valid;
}

/* Prints the names of functions behind the word's module. */
static void end_beginning(const struct kx_completion *c, struct beginning *b, struct names *names)
{
	struct kx_completion behind = *c;
	char *before = NULL;

	if (asprintf(&before, "%s%.*s", c->before, (int)(b->function - c->word), c->word) >= 0) {
		behind.before = before;
		behind.word = b->function;
	}
	print_names(&behind, names);
	free(before);
	kx_pattern_free(&b->pattern);
}

void kx_completion_add_functions(const struct kx_completion *c, pid_t pid, const char *binary)
{
	struct kx_modules mods = { 0 };
	struct names names = { 0 };
	struct beginning b;

	if (!parse_beginning(c, &b))
		return;
	if (kx_provider_get(b.pattern.space)->name) {
		struct kx_select_module m = { .provider = kx_provider_get(b.pattern.space),
					      .fd = -1 };

		add_symbols(&names, &m, 0, &b.pattern, b.function);
	} else if (read_modules(pid, binary, &mods)) {
		mods.count = 0;
	}
	for (size_t i = 0; i < mods.count; i++) {
		struct kx_select_module m = { .provider = kx_provider_get(b.pattern.space),
					      .module = &mods.items[i],
					      .fd = -1 };

		if (b.pattern.space == KX_PATTERN_USDT || kx_pattern_matches_module(&b.pattern, &mods.items[i]))
			add_symbols(&names, &m, pid, &b.pattern, b.function);
	}
	if (b.function == c->word)
		add_modules(c, &mods);
	end_beginning(c, &b, &names);
	kx_modules_free(&mods);
}

void kx_completion_add_recorded(const struct kx_completion *c, const char *map_path)
{
	struct kx_map map = { 0 };
	struct names names = { 0 };
	struct beginning b;

	if (!parse_beginning(c, &b))
		return;
	if (!kx_map_read(map_path, &map, NULL)) {
		for (uint32_t id = 1; id <= map.nfunctions; id++) {
			const char *name = kx_map_name(&map, id),
				   *module = kx_map_module_name(&map, id);

			if (name && !strncmp(name, b.function, strlen(b.function)) &&
			    (!b.pattern.module ||
			     !fnmatch(b.pattern.module, module ? module : "", 0)))
				add_name(&names, name, typed_length(name));
		}
		kx_map_free(&map);
	}
	end_beginning(c, &b, &names);
}
