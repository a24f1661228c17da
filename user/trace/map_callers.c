// SPDX-License-Identifier: BSD-2-Clause
/* The function at an address: one of the traced ones, or one that the map has because it called them. */
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/demangle.h"
#include "trace/map_internal.h"

static int compare_entries(const void *a, const void *b)
{
	const struct kx_map_function *x = ((const struct kx_map_at *)a)->function;
	const struct kx_map_function *y = ((const struct kx_map_at *)b)->function;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x < y ? -1 : x > y;
}

static struct kx_map_index *index_of(struct kx_map *map)
{
	struct kx_map_storage *s = kx_map_storage_of(map);
	size_t n = map->nfunctions + map->ncallers;
	struct kx_map_index *index;

	if (!s || s->index)
		return s ? s->index : NULL;
	index = calloc(1, sizeof(*index) + n * sizeof(index->entries[0]));
	if (!index)
		return NULL;
	for (size_t i = 0; i < map->nfunctions; i++)
		index->entries[index->n++].function = &map->functions[i];
	for (size_t i = 0; i < map->ncallers; i++)
		index->entries[index->n++].function = &map->callers[i];
	qsort(index->entries, n, sizeof(index->entries[0]), compare_entries);
	s->index = index;
	return index;
}

static bool begins_by(const struct kx_map_function *f, uint32_t module, uint64_t address)
{
	return f->module < module || (f->module == module && f->address <= address);
}

const char *kx_map_name_at(struct kx_map *map, uint32_t module, uint64_t address)
{
	struct kx_map_index *index = index_of(map);
	const struct kx_map_function *f;
	struct kx_map_at *e;
	size_t end;

	if (!index)
		return NULL;
	end = KX_COUNT_LEADING(index->n, i, begins_by(index->entries[i].function, module, address));
	if (!end)
		return NULL;
	e = &index->entries[end - 1];
	f = e->function;
	if (f->module != module || address - f->address >= f->size || !f->symbol || !*f->symbol)
		return NULL;
	if (!e->name) {
		char *symbol = strndup(f->symbol, (size_t)(strchrnul(f->symbol + 1, '@') - f->symbol));

		e->name = symbol ? kx_demangle(symbol) : NULL;
		if (e->name)
			free(symbol);
		else
			e->name = symbol;
	}
	return e->name;
}
