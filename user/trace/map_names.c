// SPDX-License-Identifier: BSD-2-Clause
/* Names of a map's functions and modules, demangled on demand, and the memory that a map owns. */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "trace/map_internal.h"

/* Bytes of the cache of demangled names: enough for most maps of 200,000 functions. */
#define NAMES_BYTES (12u << 20)
#define NAME_BYTES  (64u << 10) /* longer names stay mangled */

struct kx_map_storage *kx_map_storage_of(struct kx_map *map)
{
	if (!map->storage)
		map->storage = calloc(1, sizeof(struct kx_map_storage));
	return map->storage;
}

void kx_map_free(struct kx_map *map)
{
	struct kx_map_storage *s = map->storage;

	if (!s)
		return;
	free(s->names);
	free(s->name_at);
	for (size_t i = 0; s->index && i < s->index->n; i++)
		free(s->index->entries[i].name);
	free(s->index);
	tdestroy(s->unknown, free);
	free(s->text);
	free(s->file_name);
	free(s->file_path);
	free(s->file_build_id);
	json_decref(s->root);
	elf_end(s->elf);
	if (s->owns_lists) {
		free(map->modules);
		free(map->functions);
		free(map->labels);
		free(map->callers);
		memset(map, 0, sizeof(*map));
	}
	map->storage = NULL;
	free(s);
}

struct unknown {
	uint32_t id;
	char text[12];
};

static int compare_unknown(const void *a, const void *b)
{
	const struct unknown *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static const char *unknown_name(struct kx_map_storage *s, uint32_t id)
{
	struct unknown *u = malloc(sizeof(*u)), **found;

	if (!u)
		return "#?";
	u->id = id;
	snprintf(u->text, sizeof(u->text), "#%u", id);
	found = tsearch(u, &s->unknown, compare_unknown);
	if (!found || *found != u)
		free(u);
	return found ? (*found)->text : "#?";
}

struct name {
	char *text;
	size_t len; /* beyond NAME_BYTES only counted */
};

static void append(const char *text, size_t len, void *opaque)
{
	struct name *n = opaque;

	if (len && n->len + len < NAME_BYTES) /* @text may be NULL without a length */
		memcpy(n->text + n->len, text, len);
	n->len += len;
}

/* Adds the readable name of @symbol, which belongs to function @index, to the cache. */
static const char *add_name(struct kx_map *map, size_t index, const char *symbol, size_t len)
{
	struct kx_map_storage *s = map->storage;
	struct name n = { 0 };
	char *base;

	if (map->names_once) {
		s->names_len = 0;
	} else if (s->names_len + NAME_BYTES > NAMES_BYTES) {
		s->names_len = 0;
		memset(s->name_at, 0, map->nfunctions * sizeof(*s->name_at));
	}
	n.text = s->names + s->names_len;
	base = symbol[len] ? strndup(symbol, len) : NULL;
	if (!kx_demangle_to(base ? base : symbol, append, &n) || n.len >= NAME_BYTES) {
		n.len = 0;
		append(symbol, len < NAME_BYTES ? len : NAME_BYTES - 1, &n);
	}
	free(base);
	n.text[n.len] = 0;
	if (!map->names_once)
		s->name_at[index] = (uint32_t)s->names_len + 1;
	s->names_len += n.len + 1;
	return n.text;
}

const char *kx_map_symbol(const struct kx_map *map, uint32_t id)
{
	if (!id || id > map->nfunctions)
		return NULL;
	return map->labels ? map->symbols + map->labels[id - 1].symbol : map->functions[id - 1].symbol;
}

const char *kx_map_name(struct kx_map *map, uint32_t id)
{
	struct kx_map_storage *s = kx_map_storage_of(map);
	const char *symbol;
	size_t len;

	if (!s)
		return "#?";
	/* before the symbol is looked at, which is rarely in the cache */
	if (s->name_at && id && id <= map->nfunctions && s->name_at[id - 1])
		return s->names + s->name_at[id - 1] - 1;
	symbol = kx_map_symbol(map, id);
	if (!symbol || !*symbol)
		return unknown_name(s, id);
	/* without the symbol's version: malloc@@GLIBC_2.2.5 */
	len = (size_t)(strchrnul(symbol + 1, '@') - symbol);
	if (!symbol[len] && !kx_is_mangled(symbol))
		return symbol;
	if (!s->name_at && !map->names_once)
		s->name_at = calloc(map->nfunctions, sizeof(*s->name_at));
	if (!s->names)
		s->names = malloc(map->names_once ? NAME_BYTES : NAMES_BYTES);
	return (s->name_at || map->names_once) && s->names ? add_name(map, id - 1, symbol, len) : symbol;
}

void kx_map_prefetch(const struct kx_map *map, uint32_t id, bool text)
{
	const struct kx_map_storage *s = map->storage;
	bool cached = s && s->name_at;

	if (!id || id > map->nfunctions)
		return;
	if (!text) {
		if (map->labels)
			__builtin_prefetch(&map->labels[id - 1]);
		else
			__builtin_prefetch(&map->functions[id - 1]);
		if (cached)
			__builtin_prefetch(&s->name_at[id - 1]);
	} else if (cached && s->name_at[id - 1]) {
		__builtin_prefetch(s->names + s->name_at[id - 1] - 1);
	} else {
		const char *symbol = kx_map_symbol(map, id);

		__builtin_prefetch(symbol);
		__builtin_prefetch(symbol + 40); /* most names end in the same line or the next one */
	}
}

uint32_t kx_map_module(const struct kx_map *map, uint32_t id)
{
	if (!id || id > map->nfunctions)
		return UINT32_MAX;
	return map->labels ? map->labels[id - 1].module : map->functions[id - 1].module;
}

const char *kx_map_module_name(const struct kx_map *map, uint32_t id)
{
	uint32_t module = kx_map_module(map, id);
	const char *name = module < map->nmodules ? map->modules[module].name : NULL;

	return name ? name : "";
}
