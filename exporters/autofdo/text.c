// SPDX-License-Identifier: BSD-2-Clause
/*
 * The text form of version 4 (RFC, section 5). Its strings have no escapes. An empty
 * section is left out, an empty body is "{ }"; file names are numbered as in the binary
 * form, without the unknown file, which is -1.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/autofdo/write.h"

struct text {
	const struct kx_afdo *a;
	struct kx_bytes *out;
	uint32_t *files; /* number in the list, by rank; KX_AFDO_NONE: cannot be written */
	uint64_t dropped;
};

static bool writable(const char *text)
{
	return !strchr(text, '"');
}

static void str(struct text *t, const char *text)
{
	kx_bytes_str(t->out, text);
}

static void number(struct text *t, uint64_t v)
{
	kx_bytes_decimal(t->out, v);
}

static void quoted(struct text *t, const char *text)
{
	str(t, "\"");
	str(t, text);
	str(t, "\"");
}

static void indent(struct text *t, unsigned depth)
{
	while (depth--)
		str(t, "  ");
}

static void field(struct text *t, const char *name, uint64_t v, const char *end)
{
	str(t, name);
	str(t, " = ");
	number(t, v);
	str(t, end);
}

static void filenames(struct text *t)
{
	const struct kx_afdo *a = t->a;
	uint32_t n = 0;

	str(t, "filenames = {");
	for (size_t i = 0; i < a->nfile_order; i++) {
		const char *path = a->files[a->file_order[i]];

		t->files[i] = KX_AFDO_NONE;
		if (!writable(path)) {
			t->dropped++;
			continue;
		}
		str(t, n ? ",\n  " : "\n  ");
		quoted(t, path);
		t->files[i] = n++;
	}
	/* The grammar requires at least one name. */
	str(t, n ? "\n}\n\n" : "\n  \"\"\n}\n\n");
}

static void summary(struct text *t)
{
	const struct kx_afdo_summary *s = &t->a->summary;

	str(t, "summary = {\n");
	field(t, "  total_count", s->total, ",\n");
	field(t, "  max_count", s->max, ",\n");
	field(t, "  max_fn_count", s->max_head, ",\n");
	field(t, "  num_counts", s->num_counts, ",\n");
	field(t, "  num_functions", s->num_functions, ",\n");
	field(t, "  num_detailed_entries", s->ncutoffs, ",\n");
	str(t, "  detailed_entries = {");
	for (size_t i = 0; i < s->ncutoffs; i++) {
		str(t, i ? ",\n    {" : "\n    {");
		field(t, "cutoff", s->cutoffs[i].cutoff, ", ");
		field(t, "min_count", s->cutoffs[i].min_count, ", ");
		field(t, "num_counts", s->cutoffs[i].num_counts, "}");
	}
	str(t, s->ncutoffs ? "\n  }\n}\n" : " }\n}\n");
}

static void location(struct text *t, uint32_t line, uint32_t disc)
{
	number(t, line);
	if (disc) {
		str(t, ".");
		number(t, disc);
	}
}

/* Opens a section at its first entry, separates entries after that. */
static void entry(struct text *t, const char *section, unsigned depth, bool *any, bool *in_it)
{
	if (!*in_it) {
		str(t, *any ? ",\n" : "\n");
		indent(t, depth);
		str(t, section);
		str(t, " = {");
	}
	str(t, *in_it ? ",\n" : "\n");
	indent(t, depth + 1);
	*any = *in_it = true;
}

static void end_section(struct text *t, unsigned depth, bool in_it)
{
	if (!in_it)
		return;
	str(t, "\n");
	indent(t, depth);
	str(t, "}");
}

static void name_and_file(struct text *t, const struct kx_afdo_symbol *s)
{
	uint32_t file = s->file == KX_AFDO_NONE ? KX_AFDO_NONE : t->files[t->a->file_rank[s->file]];

	quoted(t, s->name);
	str(t, ":");
	if (file == KX_AFDO_NONE)
		str(t, "-1");
	else
		number(t, file);
	str(t, "(");
	number(t, s->id);
}

static void targets(struct text *t, const struct kx_afdo_place *p)
{
	bool first = true;

	str(t, " -> {");
	for (size_t i = 0; i < p->ntargets; i++) {
		const struct kx_afdo_symbol *s = &t->a->symbols[p->targets[i].symbol];

		if (!writable(s->name))
			continue;
		str(t, first ? "" : ", ");
		first = false;
		number(t, s->id);
		str(t, " = ");
		number(t, p->targets[i].count);
	}
	str(t, "}");
}

static bool has_targets(const struct text *t, const struct kx_afdo_place *p)
{
	for (size_t i = 0; i < p->ntargets; i++)
		if (writable(t->a->symbols[p->targets[i].symbol].name))
			return true;
	return false;
}

static void body(struct text *t, const struct kx_afdo_body *b, unsigned depth)
{
	bool any = false, in_it = false;

	str(t, "{");
	for (size_t i = 0; i < b->nplaces; i++) {
		if (!b->places[i].counted)
			continue;
		entry(t, "locations", depth, &any, &in_it);
		location(t, b->places[i].line, b->places[i].disc);
		str(t, " = ");
		number(t, b->places[i].count);
	}
	end_section(t, depth, in_it);
	in_it = false;
	for (size_t i = 0; i < b->nplaces; i++) {
		if (!has_targets(t, &b->places[i]))
			continue;
		entry(t, "callsites", depth, &any, &in_it);
		location(t, b->places[i].line, b->places[i].disc);
		targets(t, &b->places[i]);
	}
	end_section(t, depth, in_it);
	in_it = false;
	for (size_t i = 0; i < b->ninlined; i++) {
		const struct kx_afdo_symbol *s = &t->a->symbols[b->inlined[i].symbol];

		if (!writable(s->name))
			continue;
		entry(t, "inlined", depth, &any, &in_it);
		location(t, b->inlined[i].line, b->inlined[i].disc);
		str(t, " = ");
		name_and_file(t, s);
		str(t, ") = ");
		body(t, b->inlined[i].body, depth + 2);
	}
	end_section(t, depth, in_it);
	if (any) {
		str(t, "\n");
		indent(t, depth - 1);
		str(t, "}");
	} else {
		str(t, " }");
	}
}

int kx_afdo_write_text(const struct kx_afdo *a, struct kx_bytes *out, uint64_t *dropped)
{
	struct text t = { .a = a, .out = out };

	t.files = calloc(a->nfile_order + 1, sizeof(*t.files));
	if (!t.files)
		return -ENOMEM;
	filenames(&t);
	summary(&t);
	for (size_t i = 0; i < a->norder; i++) {
		const struct kx_afdo_symbol *s = &a->symbols[a->order[i]];

		if (!writable(s->name))
			t.dropped++;
		if (!s->top || !writable(s->name))
			continue;
		str(&t, "\n");
		name_and_file(&t, s);
		str(&t, ":");
		number(&t, s->head);
		str(&t, ":");
		number(&t, s->first_ns);
		str(&t, ") = ");
		body(&t, &s->body, 1);
		str(&t, "\n");
	}
	free(t.files);
	*dropped = t.dropped;
	return out->failed ? -ENOMEM : 0;
}
