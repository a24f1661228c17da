// SPDX-License-Identifier: BSD-2-Clause
#include "trace/probe_scale.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEY "scales"
#define CHANGE 20 /* a change by more than one part in so many is a new scale */

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint32_t median(uint32_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

static struct kx_probe_scale median_of(const struct kx_probe_scales *s)
{
	uint32_t cheap[KX_PROBE_SCALE_RECENT], stepped[KX_PROBE_SCALE_RECENT];

	for (size_t i = 0; i < s->nrecent; i++) {
		cheap[i] = s->recent[i].cheap;
		stepped[i] = s->recent[i].stepped;
	}
	return (struct kx_probe_scale){ .tsc = s->recent[s->nrecent / 2].tsc,
					.cheap = median(cheap, s->nrecent),
					.stepped = median(stepped, s->nrecent) };
}

static bool differs(uint32_t a, uint32_t b)
{
	uint32_t distance = a > b ? a - b : b - a;

	return distance > b / CHANGE;
}

static void thin_out(struct kx_probe_scales *s)
{
	for (size_t i = 1; i < KX_PROBE_SCALES / 2; i++)
		s->items[i] = s->items[2 * i];
	s->n = KX_PROBE_SCALES / 2;
}

bool kx_probe_scales_add(struct kx_probe_scales *s, const struct kx_probe_scale *measured)
{
	bool full = s->nrecent == KX_PROBE_SCALE_RECENT;
	struct kx_probe_scale now;

	/* the first calibration's many rounds count as two: one measurement may meet a slow moment */
	for (; s->nrecent < 2; s->nrecent++)
		s->recent[s->nrecent] = (struct kx_probe_scale){ 0, KX_PROBE_SCALE_ONE, KX_PROBE_SCALE_ONE };
	if (full)
		memmove(s->recent, s->recent + 1, --s->nrecent * sizeof(s->recent[0]));
	s->recent[s->nrecent++] = *measured;
	now = median_of(s);
	if (!full) {
		now.tsc = 0;
		s->items[0] = now;
		s->n = 1;
		return true;
	}
	if (!differs(now.cheap, s->items[s->n - 1].cheap) && !differs(now.stepped, s->items[s->n - 1].stepped))
		return false;
	if (s->n == KX_PROBE_SCALES)
		thin_out(s);
	s->items[s->n++] = now;
	return true;
}

static json_int_t most(uint32_t scale)
{
	return scale < KX_PROBE_SCALE_MOST ? scale : KX_PROBE_SCALE_MOST;
}

void kx_probe_scales_write(const struct kx_probe_scales *s, json_t *session)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n; i++) {
		const struct kx_probe_scale *at = &s->items[i];

		json_array_append_new(list, json_pack("[I,I,I]", (json_int_t)at->tsc, most(at->cheap),
						      most(at->stepped)));
	}
	json_object_set_new(json_object_get(session, "probe_costs"), KEY, list);
}

static bool read_number(const json_t *list, size_t i, json_int_t limit, json_int_t *out)
{
	const json_t *j = json_array_get(list, i);

	*out = json_integer_value(j);
	return json_is_integer(j) && *out >= 0 && *out <= limit;
}

static bool read_scale(const json_t *j, struct kx_probe_scale *out)
{
	json_int_t tsc, cheap, stepped;

	if (!read_number(j, 0, INT64_MAX, &tsc) || !read_number(j, 1, KX_PROBE_SCALE_MOST, &cheap) ||
	    !read_number(j, 2, KX_PROBE_SCALE_MOST, &stepped))
		return false;
	*out = (struct kx_probe_scale){ (uint64_t)tsc, (uint32_t)cheap, (uint32_t)stepped };
	return true;
}

int kx_probe_scales_read(const json_t *costs, struct kx_probe_scale **out, size_t *n)
{
	const json_t *list = json_object_get(costs, KEY);
	size_t size = json_array_size(list);
	struct kx_probe_scale *scales;

	*out = NULL;
	*n = 0;
	if (!size)
		return 0;
	scales = calloc(size, sizeof(*scales));
	if (!scales)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++)
		if (!read_scale(json_array_get(list, i), &scales[i]) ||
		    (i ? scales[i].tsc <= scales[i - 1].tsc : scales[i].tsc != 0)) {
			free(scales);
			return 0;
		}
	*out = scales;
	*n = size;
	return 0;
}
