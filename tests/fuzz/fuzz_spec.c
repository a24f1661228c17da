// SPDX-License-Identifier: BSD-2-Clause
/* Specs of values: what -f has behind a pattern. */
#include "fuzz.h"
#include "select/resolved_values.h"

/* What fits into a record, and a fetch that the kernel's programs take. */
static void check(const struct kx_value *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct kx_fetch *f = &v[i].fetch;

		if (!v[i].label)
			abort();
		if (v[i].unknown)
			continue;
		if (f->hops > KX_FETCH_HOPS || f->size > 8 || f->most > KX_STRING_LONGEST)
			abort();
		if (f->flags & KX_FETCH_COUNTED && (f->length >= n || v[f->length].type.kind == KX_VALUE_STRING))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kx_value_place place = { .exits = true };
	struct kx_resolved_values values;
	struct kx_value_spec spec;
	char *text;

	if (!size || !(text = malloc(size)))
		return 0;
	place.args = data[0] & 7;
	place.syscall = data[0] & 8;
	for (size_t i = 1; i < size; i++)
		text[i - 1] = (char)data[i];
	text[size - 1] = 0;
	if (!kx_value_spec_parse(text, &spec, NULL)) {
		if (!spec.pattern || spec.n > KX_MAX_VALUES)
			abort();
		if (!kx_values_resolve(&spec, &place, NULL, &values, NULL)) {
			check(values.values, values.n);
			kx_resolved_values_free(&values);
		}
		kx_value_spec_free(&spec);
	}
	free(text);
	return 0;
}
