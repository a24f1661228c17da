// SPDX-License-Identifier: BSD-2-Clause
#include "address_space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t address_of(const json_t *mapping, const char *key)
{
	const char *text = json_string_value(json_object_get(mapping, key));

	return text ? strtoull(text, NULL, 16) : 0;
}

static int by_place(const void *a, const void *b)
{
	const struct kx_mapping *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int add(struct kx_address_space *a, const struct kx_map *map, int32_t pid,
	       const json_t *mapping)
{
	const char *path = json_string_value(json_object_get(mapping, "path"));
	struct kx_mapping *items;
	uint32_t module = 0;

	while (path && module < map->nmodules && strcmp(map->modules[module].path, path))
		module++;
	if (!path || module == map->nmodules)
		return 0;
	items = reallocarray(a->items, a->count + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	a->items = items;
	items[a->count++] = (struct kx_mapping){
		.pid = pid, .module = module + 1, .start = address_of(mapping, "start"),
		.end = address_of(mapping, "end"), .load_bias = address_of(mapping, "load_bias"),
	};
	return 0;
}

int kx_address_space_init(struct kx_address_space *a, const struct kx_map *map)
{
	const json_t *process, *mapping;
	size_t i, k;

	memset(a, 0, sizeof(*a));
	if (!map)
		return 0;
	json_array_foreach(json_object_get(map->session, "processes"), i, process) {
		json_int_t pid = json_integer_value(json_object_get(process, "pid"));

		json_array_foreach(json_object_get(process, "mappings"), k, mapping) {
			if (add(a, map, (int32_t)pid, mapping)) {
				kx_address_space_free(a);
				return -ENOMEM;
			}
		}
	}
	if (a->count)
		qsort(a->items, a->count, sizeof(*a->items), by_place);
	return 0;
}

void kx_address_space_free(struct kx_address_space *a)
{
	free(a->items);
	memset(a, 0, sizeof(*a));
}

static int holds(const struct kx_mapping *m, int32_t pid, uint64_t address)
{
	return m->pid == pid && address >= m->start && address < m->end;
}

uint32_t kx_address_space_find(struct kx_address_space *a, int32_t pid, uint64_t *address)
{
	size_t lo = 0, hi = a->count;

	if (!hi)
		return 0;
	if (!holds(&a->items[a->last], pid, *address)) {
		/* the last one that does not begin behind it */
		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;
			const struct kx_mapping *m = &a->items[mid];

			if (m->pid < pid || (m->pid == pid && m->start <= *address))
				lo = mid + 1;
			else
				hi = mid;
		}
		if (!lo || !holds(&a->items[lo - 1], pid, *address))
			return 0;
		a->last = lo - 1;
	}
	*address -= a->items[a->last].load_bias;
	return a->items[a->last].module;
}
