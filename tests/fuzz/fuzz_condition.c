// SPDX-License-Identifier: BSD-2-Clause
/* Conditions, and specs of values: the first line is a condition, the rest a value of -f. */
#include <string.h>

#include "fuzz.h"
#include "select/condition_table.h"

/* The ways of a table lead forward, and end. */
static void check_table(const struct kx_condition_table *t)
{
	if (!t->n || t->n > KX_MAX_TERMS)
		abort();
	for (unsigned i = 0; i < t->n; i++) {
		const uint8_t ways[] = { t->terms[i].yes, t->terms[i].no };

		for (int k = 0; k < 2; k++)
			if (ways[k] != KX_TERM_ACCEPT && ways[k] != KX_TERM_REJECT &&
			    (ways[k] <= i || ways[k] >= t->n))
				abort();
		if (t->terms[i].how == KX_TERM_GLOB && t->terms[i].constant >= KX_MAX_GLOBS)
			abort();
	}
}

static void compile(const struct kx_condition *c, const struct kx_value_spec *spec)
{
	static const struct kx_value_place place = { .args = 6, .exits = true };
	struct kx_resolved_values v;
	struct kx_condition_globs globs = { 0 };
	struct kx_condition_names names = { .function = "f", .values = v.values, .place = &place };
	struct kx_condition_table table;
	struct kx_err err = { 0 };

	if (kx_values_resolve(spec, &place, NULL, &v, &err))
		return;
	names.n = v.n;
	if (!kx_condition_compile(&c, 1, &names, &globs, &table, &err))
		check_table(&table);
	else if (!err.text[0])
		abort();
	kx_condition_globs_free(&globs);
	kx_resolved_values_free(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *line;
	struct kx_condition c;
	struct kx_value_spec spec;
	struct kx_err err = { 0 };

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = 0;
	line = strchr(text, '\n');
	if (line)
		*line++ = 0;
	if (!kx_value_spec_parse(line ? line : "", &spec, &err)) {
		if (!kx_condition_parse("--if", text, 0, &c, &err)) {
			compile(&c, &spec);
			kx_condition_free(&c);
		} else if (!err.text[0]) {
			abort();
		}
		kx_value_spec_free(&spec);
	}
	free(text);
	return 0;
}
