// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/html/functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "trace/budget_info.h"

int kx_html_functions_read(struct kx_html_functions *f, const struct kx_export *x,
			   struct kx_err *err)
{
	const struct kx_report_options options = {
		.session = x->session,
		.calls = x->whole ? NULL : x->calls,
		.raw = x->raw,
	};
	int r = kx_report_new(x->file, &options, &f->report, err);
	size_t n = r ? 0 : kx_report_nfunctions(f->report);

	if (r)
		return r;
	for (size_t i = 0; i < n; i++) {
		struct kx_report_function one;
		uint32_t index;

		kx_report_get_function(f->report, i, &one);
		if (kx_pair_index(&f->index, 0, one.id, &index) < 0)
			return kx_err_set(err, -ENOMEM, "out of memory for functions");
	}
	return 0;
}

void kx_html_functions_free(struct kx_html_functions *f)
{
	for (size_t i = 0; i < f->ndurations; i++)
		free(f->durations[i].counts);
	free(f->durations);
	kx_pair_map_free(&f->walked);
	kx_pair_map_free(&f->index);
	kx_report_free(f->report);
}

uint32_t kx_html_function_index(struct kx_html_functions *f, uint32_t id)
{
	uint32_t index = 0;

	if (kx_pair_find_direct(&f->index, id, &index))
		return index;
	/* the report has counted all functions: this adds none */
	kx_pair_index(&f->index, 0, id, &index);
	return index;
}

/* Includes bucket @at, and some around it so that this is rare. */
static int widen(struct kx_html_durations *d, uint32_t at)
{
	uint32_t first = at > 3 ? at - 3 : 0, end = at + 4;
	uint32_t *counts;

	if (d->n) {
		first = first < d->first ? first : d->first;
		end = end > d->first + d->n ? end : d->first + d->n;
	}
	counts = calloc(end - first, sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	if (d->n)
		memcpy(counts + (d->first - first), d->counts, d->n * sizeof(*counts));
	free(d->counts);
	*d = (struct kx_html_durations){ counts, first, end - first };
	return 0;
}

int kx_html_functions_add_new(struct kx_html_functions *f, uint32_t id, uint32_t bucket)
{
	struct kx_html_durations *d;
	uint32_t index;
	int r = kx_pair_index(&f->walked, 0, id, &index);

	if (r < 0)
		return r;
	if (r && KX_ARRAY_RESERVE(f->durations, f->room, index))
		return -ENOMEM;
	d = &f->durations[index];
	if (r) {
		*d = (struct kx_html_durations){ 0 };
		f->ndurations = index + 1;
	}
	if (bucket - d->first >= d->n && widen(d, bucket))
		return -ENOMEM;
	d->counts[bucket - d->first] += d->counts[bucket - d->first] != UINT32_MAX;
	return 0;
}

static void encode_durations(struct kx_html_functions *f, uint32_t id, struct kx_bytes *out)
{
	const struct kx_html_durations none = { 0 }, *d = &none;
	uint32_t from = 0, to, index;

	/* one without measured calls is numbered only now: it has none */
	if (kx_pair_index(&f->walked, 0, id, &index) >= 0 && index < f->ndurations)
		d = &f->durations[index];
	to = d->n;
	while (from < to && !d->counts[from])
		from++;
	while (to > from && !d->counts[to - 1])
		to--;
	kx_bytes_varint(out, to - from);
	if (to > from)
		kx_bytes_varint(out, d->first + from);
	for (uint32_t i = from; i < to; i++)
		kx_bytes_varint(out, d->counts[i]);
}

static uint64_t module_of(const struct kx_export *x, uint32_t id)
{
	const struct kx_map *map = &x->names->map;

	return x->names->has_map && id && id <= map->nfunctions
		       ? map->functions[id - 1].module + 1ull
		       : 0;
}

static void encode_function(const struct kx_export *x, const struct kx_report_function *one,
			    bool sched, const struct kx_budget_entry *limited, struct kx_bytes *out)
{
	const uint64_t times[] = { one->total, one->self, one->min, one->p50,  one->p90,
				   one->p99,   one->max,  one->off, one->wait, one->self_off };
	size_t n = sizeof(times) / sizeof(*times) - (sched ? 0 : 3);

	kx_bytes_varint(out, module_of(x, one->id));
	kx_bytes_varint(out, one->count);
	kx_bytes_varint(out, one->open);
	kx_bytes_varint(out, one->no_exit);
	kx_bytes_varint(out, limited && limited->calls > one->count ? limited->calls : one->count);
	for (size_t i = 0; i < n; i++)
		kx_bytes_varint(out, kx_trace_ns(times[i], x->tsc_hz));
}

int kx_html_functions_encode(struct kx_html_functions *f, const struct kx_export *x,
			     struct kx_bytes *numbers, struct kx_bytes *names)
{
	struct kx_text_out *text = malloc(sizeof(*text));
	struct kx_budget_info budget = { 0 };
	bool sched = kx_report_get_totals(f->report)->has_sched;
	int r = text ? kx_budget_info_read(x->session, &budget) : -ENOMEM;

	if (r) {
		free(text);
		return r;
	}
	kx_text_init_memory(text);
	kx_text_char(text, '[');
	for (size_t i = 0; i < kx_report_nfunctions(f->report); i++) {
		struct kx_report_function one;

		kx_report_get_function(f->report, i, &one);
		encode_function(x, &one, sched, kx_budget_info_find(&budget, one.id), numbers);
		encode_durations(f, one.id, numbers);
		if (i)
			kx_text_char(text, ',');
		kx_text_json_string(text, kx_trace_name(x->names, one.id));
	}
	kx_text_char(text, ']');
	r = kx_text_flush(text);
	kx_bytes_put(names, text->memory, text->stored);
	free(text->memory);
	free(text);
	kx_budget_info_free(&budget);
	return r;
}
