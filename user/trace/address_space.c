// SPDX-License-Identifier: BSD-2-Clause
#include "trace/address_space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"
#include "trace/session_processes.h"

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

/* The modules of a map in the order of their paths. */
static int by_path(const void *a, const void *b)
{
	const struct kx_map_module *const *x = a, *const *y = b;

	int order = strcmp((*x)->path, (*y)->path);

	return order ? order : *x < *y ? -1 : 1;
}

static int compare_path(const void *path, const void *module)
{
	return strcmp(path, (*(const struct kx_map_module *const *)module)->path);
}

static int add(struct kx_address_space *a, const struct kx_map *map,
	       const struct kx_map_module **modules, int32_t pid, const json_t *mapping)
{
	const char *path = json_string_value(json_object_get(mapping, "path"));
	const struct kx_map_module **module = NULL;

	if (path)
		module = bsearch(path, modules, map->nmodules, sizeof(*modules), compare_path);
	if (!module)
		return 0;
	while (module > modules && !strcmp(path, module[-1]->path))
		module--;
	if (KX_ARRAY_RESERVE(a->items, a->room, a->count))
		return -ENOMEM;
	a->items[a->count++] = (struct kx_mapping){
		.pid = pid,
		.module = (uint32_t)(*module - map->modules) + 1,
		.start = address_of(mapping, "start"),
		.end = address_of(mapping, "end"),
		.load_bias = address_of(mapping, "load_bias"),
	};
	return 0;
}

static int add_processes(struct kx_address_space *a, const struct kx_map *map,
			 const struct kx_map_module **modules,
			 const struct kx_session_processes *processes)
{
	const json_t *mapping;
	size_t k;

	for (size_t i = 0; i < map->nmodules; i++)
		modules[i] = &map->modules[i];
	qsort(modules, map->nmodules, sizeof(*modules), by_path);
	for (size_t i = 0; i < processes->count; i++) {
		const struct kx_session_process *p = &processes->items[i];

		/* of several processes with the same pid, the last one counts */
		if (kx_session_process(processes, p->pid) != p->json)
			continue;
		json_array_foreach (json_object_get(p->json, "mappings"), k, mapping)
			if (add(a, map, modules, p->pid, mapping))
				return -ENOMEM;
	}
	return 0;
}

int kx_address_space_init(struct kx_address_space *a, const struct kx_map *map)
{
	const struct kx_map_module **modules;
	struct kx_session_processes processes;
	int r;

	memset(a, 0, sizeof(*a));
	if (!map)
		return 0;
	modules = calloc(map->nmodules + 1, sizeof(*modules));
	r = kx_session_processes_init(&processes, map->session);
	if (!modules)
		r = -ENOMEM;
	if (!r)
		r = add_processes(a, map, modules, &processes);
	kx_session_processes_free(&processes);
	free(modules);
	if (r)
		kx_address_space_free(a);
	else if (a->count)
		qsort(a->items, a->count, sizeof(*a->items), by_place);
	return r;
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

static bool begins_by(const struct kx_mapping *m, int32_t pid, uint64_t address)
{
	return m->pid < pid || (m->pid == pid && m->start <= address);
}

uint32_t kx_address_space_find(struct kx_address_space *a, int32_t pid, uint64_t *address)
{
	if (!a->count)
		return 0;
	if (!holds(&a->items[a->last], pid, *address)) {
		/* the last mapping that begins at or before it */
		const size_t end = KX_COUNT_LEADING(a->count, i, begins_by(&a->items[i], pid, *address));

		if (!end || !holds(&a->items[end - 1], pid, *address))
			return 0;
		a->last = end - 1;
	}
	*address -= a->items[a->last].load_bias;
	return a->items[a->last].module;
}
