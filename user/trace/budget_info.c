// SPDX-License-Identifier: BSD-2-Clause
#include "trace/budget_info.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "trace/notes.h"

int kx_budget_info_write(const struct kx_budget_info *info, json_t *session)
{
	json_t *functions = json_array(), *budget;

	for (size_t i = 0; i < info->n && functions; i++) {
		const struct kx_budget_entry *e = &info->entries[i];

		json_array_append_new(functions,
				      json_pack("{s:I,s:I,s:I,s:I,s:f}", "id", (json_int_t)e->id,
						"calls", (json_int_t)e->calls, "recorded",
						(json_int_t)e->recorded, "one_in",
						(json_int_t)e->one_in, "out_seconds", e->out_seconds));
	}
	budget = json_pack("{s:f,s:f,s:I,s:f,s:o}", "percent", info->percent, "taken_percent",
			   info->taken_percent, "limited", (json_int_t)info->n, "all_in_seconds",
			   info->all_in_seconds, "functions", functions);
	return json_object_set_new(session, "budget", budget) ? -ENOMEM : 0;
}

static int by_id(const void *a, const void *b)
{
	const struct kx_budget_entry *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

int kx_budget_info_read(const json_t *session, struct kx_budget_info *out)
{
	const json_t *budget = json_object_get(session, "budget");
	const json_t *functions = json_object_get(budget, "functions"), *f;
	size_t i;

	memset(out, 0, sizeof(*out));
	out->percent = json_number_value(json_object_get(budget, "percent"));
	out->taken_percent = json_number_value(json_object_get(budget, "taken_percent"));
	out->all_in_seconds = json_number_value(json_object_get(budget, "all_in_seconds"));
	if (!json_array_size(functions))
		return 0;
	out->entries = calloc(json_array_size(functions), sizeof(*out->entries));
	if (!out->entries)
		return -ENOMEM;
	json_array_foreach(functions, i, f) {
		uint64_t id = kx_note_number(f, "id"), one_in = kx_note_number(f, "one_in");

		if (!id || id > UINT32_MAX || one_in > UINT32_MAX)
			continue;
		out->entries[out->n++] = (struct kx_budget_entry){
			.id = (uint32_t)id,
			.one_in = (uint32_t)one_in,
			.calls = kx_note_number(f, "calls"),
			.recorded = kx_note_number(f, "recorded"),
			.out_seconds = json_number_value(json_object_get(f, "out_seconds")),
		};
	}
	qsort(out->entries, out->n, sizeof(*out->entries), by_id);
	return 0;
}

void kx_budget_info_free(struct kx_budget_info *info)
{
	free(info->entries);
	memset(info, 0, sizeof(*info));
}

const struct kx_budget_entry *kx_budget_info_find(const struct kx_budget_info *info, uint32_t id)
{
	const struct kx_budget_entry key = { .id = id };

	if (!info->n)
		return NULL;
	return bsearch(&key, info->entries, info->n, sizeof(key), by_id);
}

const char *kx_budget_info_text(const struct kx_budget_info *info, char *text, size_t size)
{
	text[0] = 0;
	if (info && info->all_in_seconds > 0)
		snprintf(text, size,
			 "\nProbes went in group by group (--max-overhead), the last %.1f s after the recording's "
			 "beginning: earlier calls are missing.",
			 info->all_in_seconds);
	return text;
}

const char *kx_budget_entry_text(const struct kx_budget_entry *e, char *text, size_t size)
{
	char recorded[KX_GROUPED_SIZE], calls[KX_GROUPED_SIZE], out[48] = "";

	if (e->out_seconds > 0)
		snprintf(out, sizeof(out), ", without probes for %.1f s", e->out_seconds);
	snprintf(text, size, "recorded %s of %s calls%s", kx_decimal_grouped(recorded, e->recorded),
		 kx_decimal_grouped(calls, e->calls), out);
	return text;
}
