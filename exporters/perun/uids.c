// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/perun/uids.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"

void kx_perun_uids_free(struct kx_perun_uids *u)
{
	kx_pair_map_free(&u->index);
	free(u->functions);
	json_decref(u->by_name);
	json_decref(u->by_module);
	free(u->items);
	*u = (struct kx_perun_uids){ 0 };
}

/* The number of @key in *@numbers, which is created at need; @fresh, and added, if it is new. */
static int number_of(json_t **numbers, const char *key, uint32_t fresh, uint32_t *number)
{
	const json_t *known;

	if (!*numbers)
		*numbers = json_object();
	known = json_object_get(*numbers, key);
	*number = known ? (uint32_t)json_integer_value(known) : fresh;
	if (!known && json_object_set_new(*numbers, key, json_integer(fresh)))
		return -ENOMEM;
	return 0;
}

static int add_function(struct kx_perun_uids *u, const char *name, const char *module,
			uint32_t func, struct kx_perun_function *f)
{
	char *key;
	int r;

	if (KX_ARRAY_RESERVE(u->items, u->room, u->count))
		return -ENOMEM;
	r = number_of(&u->by_name, name, (uint32_t)u->count, &f->uid);
	if (!r && f->uid == u->count)
		u->items[u->count++] = (struct kx_perun_uid){ 0 };
	if (r || asprintf(&key, "%zu %s %s", strlen(module), module, name) < 0)
		return -ENOMEM;
	r = number_of(&u->by_module, key, func, &f->same);
	free(key);
	return r;
}

const struct kx_perun_function *kx_perun_function(struct kx_perun_uids *u,
						  struct kx_symbolizer *names, uint32_t func)
{
	json_t *name, *module;
	uint32_t at;
	int r;

	if (KX_ARRAY_RESERVE(u->functions, u->functions_room, u->index.count))
		return NULL;
	r = kx_pair_index(&u->index, 0, func, &at);
	if (r > 0) {
		name = kx_json_text(kx_trace_name(names, func), SIZE_MAX);
		module = kx_json_text(kx_trace_module(names, func), SIZE_MAX);
		r = name && module
			    ? add_function(u, json_string_value(name), json_string_value(module),
					   func, &u->functions[at])
			    : -ENOMEM;
		json_decref(name);
		json_decref(module);
	}
	return r < 0 ? NULL : &u->functions[at];
}
