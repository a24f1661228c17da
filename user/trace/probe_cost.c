// SPDX-License-Identifier: BSD-2-Clause
#include "trace/probe_cost.h"

#include <errno.h>
#include <stdlib.h>

#define KEY "probe_costs"

static uint32_t ticks(const json_t *kind, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(kind, key));

	return n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0;
}

static void read_kinds(const json_t *list, struct kx_probe_costs *out)
{
	const json_t *kind;
	size_t i;

	out->nkinds = 1;
	json_array_foreach(list, i, kind) {
		if (out->nkinds == KX_PROBE_KINDS)
			return;
		out->kinds[out->nkinds++] = (struct kx_probe_cost){
			.offset = ticks(kind, "offset_ticks"),
			.cost = ticks(kind, "cost_ticks"),
			.tail_cost = ticks(kind, "tail_cost_ticks"),
		};
	}
}

int kx_probe_costs_read(const json_t *session, struct kx_probe_costs *out)
{
	const json_t *all = json_object_get(session, KEY), *list = json_object_get(all, "functions");
	const char *letters = json_string_value(list);
	size_t n = json_string_length(list);

	*out = (struct kx_probe_costs){ 0 };
	if (!letters || n >= UINT32_MAX)
		return 0;
	out->kind_of = calloc(n + 1, 1);
	if (!out->kind_of)
		return -ENOMEM;
	out->n = (uint32_t)n + 1;
	read_kinds(json_object_get(all, "kinds"), out);
	for (size_t i = 0; i < n; i++) {
		uint8_t kind = (uint8_t)(letters[i] - 'a' + 1);

		out->kind_of[i + 1] = letters[i] >= 'a' && kind < out->nkinds ? kind : 0;
	}
	return 0;
}

void kx_probe_costs_write(const struct kx_probe_costs *costs, json_t *session)
{
	json_t *kinds = json_array();

	for (uint8_t i = 1; i < costs->nkinds; i++) {
		const struct kx_probe_cost *k = &costs->kinds[i];

		json_array_append_new(kinds, json_pack("{s:s,s:s,s:I,s:I,s:I}", "entry", k->entry, "exit",
						       k->exit, "offset_ticks", (json_int_t)k->offset,
						       "cost_ticks", (json_int_t)k->cost,
						       "tail_cost_ticks", (json_int_t)k->tail_cost));
	}
	json_object_set_new(session, KEY, json_pack("{s:o}", "kinds", kinds));
}

int kx_probe_costs_write_functions(json_t *session, const uint8_t *kind_of, size_t n)
{
	json_t *all = json_object_get(session, KEY);
	char *letters;
	int code;

	if (!all)
		return 0;
	letters = malloc(n + 1);
	if (!letters)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		letters[i] = kind_of[i] ? (char)('a' + kind_of[i] - 1) : '-';
	letters[n] = 0;
	code = json_object_set_new(all, "functions", json_string(letters)) ? -ENOMEM : 0;
	free(letters);
	return code;
}

void kx_probe_costs_free(struct kx_probe_costs *costs)
{
	free(costs->kind_of);
	*costs = (struct kx_probe_costs){ 0 };
}
