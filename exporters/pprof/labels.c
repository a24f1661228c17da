// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/pprof/labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Field numbers of proto/profile.proto */
enum { SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STRING = 2, LABEL_NUMBER = 3 };

int kx_pprof_labels_init(struct kx_pprof_labels *l, const char *label, const json_t *session)
{
	*l = (struct kx_pprof_labels){ .label = label, .values.most = KX_VALUE_INDEX_MOST };
	return label ? kx_value_map_read(&l->map, session) : 0;
}

void kx_pprof_labels_free(struct kx_pprof_labels *l)
{
	kx_value_map_free(&l->map);
	kx_value_index_free(&l->values);
	kx_pair_map_free(&l->index);
	free(l->items);
}

int kx_pprof_labels_find(struct kx_pprof_labels *l, const struct kx_call *call, uint32_t stack,
			 uint32_t *newest, struct kx_pprof_labelled **out)
{
	const struct kx_function_values *f =
		l->label ? kx_value_map_find(&l->map, call->func) : NULL;
	struct kx_shown_value v;
	uint32_t value, at;
	int r;

	*out = NULL;
	if (!f || !kx_value_of_call(f, &call->values, &call->exit_values, l->label, &v) || v.state != KX_VALUE_KNOWN)
		return 0;
	r = kx_value_index_of(&l->values, call->func, &v, &value);
	if (r >= 0)
		r = kx_pair_index(&l->index, stack, value, &at);
	if (r < 0 || (r && KX_ARRAY_RESERVE(l->items, l->room, at)))
		return -ENOMEM;
	if (r) {
		l->items[at] = (struct kx_pprof_labelled){ .value = value, .next = *newest };
		*newest = at + 1;
	}
	*out = &l->items[at];
	return 0;
}

bool kx_pprof_label_text(const struct kx_pprof_labels *l, uint32_t value, char *text, size_t size)
{
	const struct kx_shown_value *v = &l->values.items[value]->value;

	if (!v->described) {
		snprintf(text, size, "(other values)");
		return true;
	}
	if (v->described->kind == KX_VALUE_SIGNED || v->described->kind == KX_VALUE_UNSIGNED)
		return false;
	kx_value_format(v, text, size);
	if (!*text)
		snprintf(text, size, "\"\"");
	return true;
}

void kx_pprof_label_put(const struct kx_pprof_labels *l, uint32_t value, struct kx_bytes *pb,
			uint64_t key, uint64_t text)
{
	size_t opened = kx_pb_open(pb, SAMPLE_LABEL);

	kx_pb_number(pb, LABEL_KEY, key);
	if (text)
		kx_pb_number(pb, LABEL_STRING, text);
	else
		kx_pb_number(pb, LABEL_NUMBER, l->values.items[value]->value.number);
	kx_pb_close(pb, opened);
}
