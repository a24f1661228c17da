// SPDX-License-Identifier: BSD-2-Clause
#include "trace/probe_cost.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define KEY "probe_costs"
#define MOST_TICKS (1 << 30) /* of a pause and its additions: products fit */

static uint32_t ticks(const json_t *kind, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(kind, key));

	return n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0;
}

static void read_ticks(const json_t *list, uint32_t out[KX_PROBE_PAUSES])
{
	for (size_t i = 0; i < KX_PROBE_PAUSES; i++) {
		json_int_t n = json_integer_value(json_array_get(list, i));

		out[i] = n > 0 && n < MOST_TICKS ? (uint32_t)n : 0;
	}
}

static struct kx_pause_cost read_pause_cost(const json_t *kind, const char *key)
{
	const json_t *pauses = json_object_get(kind, key);
	struct kx_pause_cost out;

	read_ticks(json_object_get(pauses, "offset_ticks"), out.offset);
	read_ticks(json_object_get(pauses, "cost_ticks"), out.cost);
	return out;
}

/* Pauses that are missing or do not ascend are none. */
static void read_pauses(const json_t *list, uint32_t out[KX_PROBE_PAUSES])
{
	bool ascend;

	read_ticks(list, out);
	ascend = out[0] > 0;
	for (size_t i = 1; i < KX_PROBE_PAUSES; i++)
		ascend = ascend && out[i] > out[i - 1];
	if (!ascend)
		out[0] = KX_PROBE_NO_PAUSE;
}

static uint32_t largest(const uint32_t ticks[KX_PROBE_PAUSES])
{
	uint32_t most = ticks[0];

	for (size_t i = 1; i < KX_PROBE_PAUSES; i++)
		most = ticks[i] > most ? ticks[i] : most;
	return most;
}

static uint64_t most_of(const struct kx_probe_cost *kind)
{
	uint64_t most = kind->cost > kind->tail_cost ? kind->cost : kind->tail_cost;

	if (most < kind->offset)
		most = kind->offset;
	for (int i = 0; i < 3; i++) {
		const struct kx_pause_cost *more = i == 0   ? &kind->entry_pause
						   : i == 1 ? &kind->reentry_pause
							    : &kind->exit_pause;
		uint32_t offset = largest(more->offset), cost = largest(more->cost);

		most += offset > cost ? offset : cost;
	}
	return most;
}

static bool has(const json_t *kind, const char *key, const char *value)
{
	const char *text = json_string_value(json_object_get(kind, key));

	return text && strcmp(text, value) == 0;
}

/* What a call may take at most at any time. */
static uint64_t scaled_most(const struct kx_probe_costs *costs, uint64_t ticks)
{
	uint64_t scale = KX_PROBE_SCALE_ONE;

	for (size_t i = 0; i < costs->nscales; i++) {
		scale = costs->scales[i].cheap > scale ? costs->scales[i].cheap : scale;
		scale = costs->scales[i].stepped > scale ? costs->scales[i].stepped : scale;
	}
	return ticks * scale / KX_PROBE_SCALE_ONE;
}

static void read_kinds(const json_t *list, struct kx_probe_costs *out)
{
	const json_t *kind;
	size_t i;

	out->nkinds = 1;
	json_array_foreach(list, i, kind) {
		if (out->nkinds == KX_PROBE_KINDS)
			return;
		struct kx_probe_cost *read = &out->kinds[out->nkinds++];

		*read = (struct kx_probe_cost){
			.offset = ticks(kind, "offset_ticks"),
			.cost = ticks(kind, "cost_ticks"),
			.tail_cost = ticks(kind, "tail_cost_ticks"),
			.entry_pause = read_pause_cost(kind, "entry_pauses"),
			.reentry_pause = read_pause_cost(kind, "reentry_pauses"),
			.exit_pause = read_pause_cost(kind, "exit_pauses"),
		};
		read->steps_offset = has(kind, "entry", "stepped");
		read->steps_cost = read->steps_offset || has(kind, "exit", "instruction");
		read->most = scaled_most(out, most_of(read));
	}
}

int kx_probe_costs_read(const json_t *session, struct kx_probe_costs *out)
{
	const json_t *all = json_object_get(session, KEY), *list = json_object_get(all, "functions");
	const char *letters = json_string_value(list);
	size_t n = json_string_length(list);

	*out = (struct kx_probe_costs){ .pauses = { KX_PROBE_NO_PAUSE } };
	if (!letters || n >= UINT32_MAX)
		return 0;
	out->kind_of = calloc(n + 1, 1);
	if (!out->kind_of)
		return -ENOMEM;
	out->n = (uint32_t)n + 1;
	read_pauses(json_object_get(all, "pauses_ticks"), out->pauses);
	if (kx_probe_scales_read(all, &out->scales, &out->nscales)) {
		kx_probe_costs_free(out);
		return -ENOMEM;
	}
	read_kinds(json_object_get(all, "kinds"), out);
	if (kx_exit_moves_read(all, out->nkinds, &out->moves)) {
		kx_probe_costs_free(out);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		uint8_t kind = (uint8_t)(letters[i] - 'a' + 1);

		out->kind_of[i + 1] = letters[i] >= 'a' && kind < out->nkinds ? kind : 0;
	}
	return 0;
}

const struct kx_probe_cost *kx_probe_cost_of_call(const struct kx_probe_costs *costs, int32_t pid,
						  uint32_t func, uint64_t entered)
{
	uint8_t moved = kx_exit_moves_kind(&costs->moves, pid, func, entered);

	return moved ? &costs->kinds[moved] : kx_probe_cost_of(costs, func);
}

uint64_t kx_probe_cost_most(const struct kx_probe_costs *costs, uint32_t func)
{
	uint64_t most = kx_probe_cost_of(costs, func)->most;
	uint8_t moved = func < costs->moves.n ? costs->moves.kind_of[func] : 0;

	return moved && costs->kinds[moved].most > most ? costs->kinds[moved].most : most;
}

static json_t *ticks_list(const uint32_t ticks[KX_PROBE_PAUSES])
{
	json_t *list = json_array();

	for (size_t i = 0; i < KX_PROBE_PAUSES; i++)
		json_array_append_new(list, json_integer(ticks[i]));
	return list;
}

static json_t *pause_cost(const struct kx_pause_cost *cost)
{
	return json_pack("{s:o,s:o}", "offset_ticks", ticks_list(cost->offset), "cost_ticks",
			 ticks_list(cost->cost));
}

void kx_probe_costs_write(const struct kx_probe_costs *costs, json_t *session)
{
	json_t *kinds = json_array(), *all;

	for (uint8_t i = 1; i < costs->nkinds; i++) {
		const struct kx_probe_cost *k = &costs->kinds[i];
		json_t *kind = json_pack("{s:s,s:s,s:I,s:I,s:I}", "entry", k->entry, "exit", k->exit,
					 "offset_ticks", (json_int_t)k->offset, "cost_ticks",
					 (json_int_t)k->cost, "tail_cost_ticks",
					 (json_int_t)k->tail_cost);

		if (costs->pauses[0]) {
			json_object_set_new(kind, "entry_pauses", pause_cost(&k->entry_pause));
			json_object_set_new(kind, "reentry_pauses", pause_cost(&k->reentry_pause));
			json_object_set_new(kind, "exit_pauses", pause_cost(&k->exit_pause));
		}
		json_array_append_new(kinds, kind);
	}
	all = json_pack("{s:o}", "kinds", kinds);
	if (costs->pauses[0])
		json_object_set_new(all, "pauses_ticks", ticks_list(costs->pauses));
	json_object_set_new(session, KEY, all);
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

static uint64_t addition(const uint32_t pauses[KX_PROBE_PAUSES], const uint32_t ticks[KX_PROBE_PAUSES],
			 uint64_t pause)
{
	size_t i = 1;

	if (pause <= pauses[0])
		return 0;
	while (i < KX_PROBE_PAUSES && pause >= pauses[i])
		i++;
	if (i == KX_PROBE_PAUSES)
		return ticks[i - 1];
	return (uint64_t)(ticks[i - 1] + ((int64_t)ticks[i] - ticks[i - 1]) *
						 (int64_t)(pause - pauses[i - 1]) /
						 (int64_t)(pauses[i] - pauses[i - 1]));
}

/* What is added for the pause since the last entry and not for that since the last probe. */
static uint64_t more(const struct kx_probe_costs *costs, const uint32_t ticks[KX_PROBE_PAUSES],
		     const struct kx_probe_pauses *pauses)
{
	uint64_t entry = addition(costs->pauses, ticks, pauses->reentry);
	uint64_t probe = addition(costs->pauses, ticks, pauses->entry);

	return entry > probe ? entry - probe : 0;
}

void kx_probe_taken_add_pauses(struct kx_probe_taken *taken, const struct kx_probe_costs *costs,
			       const struct kx_probe_cost *kind, const struct kx_probe_pauses *pauses)
{
	taken->offset += addition(costs->pauses, kind->entry_pause.offset, pauses->entry) +
			 more(costs, kind->reentry_pause.offset, pauses) +
			 addition(costs->pauses, kind->exit_pause.offset, pauses->exit);
	taken->cost += addition(costs->pauses, kind->entry_pause.cost, pauses->entry) +
		       more(costs, kind->reentry_pause.cost, pauses) +
		       addition(costs->pauses, kind->exit_pause.cost, pauses->exit);
}

void kx_probe_costs_free(struct kx_probe_costs *costs)
{
	free(costs->kind_of);
	free(costs->scales);
	kx_exit_moves_free(&costs->moves);
	*costs = (struct kx_probe_costs){ 0 };
}
