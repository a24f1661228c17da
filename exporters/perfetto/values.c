// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/perfetto/values.h"

#include <string.h>

#include "exporters/perfetto/schema.h"

/* Trace processor has 64-bit doubles only. */
static uint64_t double_of(const struct kx_shown_value *v)
{
	const uint32_t bits = (uint32_t)v->number;
	uint64_t out;
	double wide;
	float single;

	if (v->described->size != 4)
		return v->number;
	memcpy(&single, &bits, sizeof(single));
	wide = (double)single;
	memcpy(&out, &wide, sizeof(out));
	return out;
}

static void annotate(struct kx_bytes *pb, const struct kx_shown_value *v)
{
	const enum kx_value_kind kind = v->described->kind;
	size_t opened = kx_pb_open(pb, EVENT_ANNOTATION);
	char text[KX_VALUE_TEXT];

	kx_pb_text(pb, ANNOTATION_NAME, v->described->label);
	if (v->state == KX_VALUE_KNOWN && kind == KX_VALUE_SIGNED) {
		kx_pb_number(pb, ANNOTATION_INT, v->number);
	} else if (v->state == KX_VALUE_KNOWN && kind == KX_VALUE_UNSIGNED) {
		kx_pb_number(pb, ANNOTATION_UINT, v->number);
	} else if (v->state == KX_VALUE_KNOWN && kind == KX_VALUE_BOOL && v->number <= 1) {
		kx_pb_number(pb, ANNOTATION_BOOL, v->number);
	} else if (v->state == KX_VALUE_KNOWN && (kind == KX_VALUE_POINTER || kind == KX_VALUE_HEX)) {
		kx_pb_number(pb, ANNOTATION_POINTER, v->number);
	} else if (v->state == KX_VALUE_KNOWN && kind == KX_VALUE_FLOAT) {
		kx_pb_fixed64(pb, ANNOTATION_DOUBLE, double_of(v));
	} else {
		kx_value_format(v, text, sizeof(text));
		kx_pb_text(pb, ANNOTATION_STRING, text);
	}
	kx_pb_close(pb, opened);
}

void kx_pf_annotate_values(struct kx_bytes *pb, const struct kx_value_map *map, const struct kx_call *call, bool exit)
{
	const struct kx_function_values *f = kx_value_map_find(map, call->func);
	struct kx_shown_value v[KX_MAX_VALUES];
	size_t n = f ? kx_values_read(f, &call->values, &call->exit_values, exit, v) : 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].described->exit == exit)
			annotate(pb, &v[i]);
}
