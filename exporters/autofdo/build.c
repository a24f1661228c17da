// SPDX-License-Identifier: BSD-2-Clause
/*
 * Without samples a trace has calls only. gcc treats every line of a function that is in
 * the profile but has no record as never executed, so a profile of bare head counts
 * makes loops without calls cold (measured: gcc 12 no longer vectorizes them). Profiles for gcc therefore
 * have, for every code line without a count of its own, the function's number of calls, which is
 * an assumption; or they leave out the functions of which only calls are known.
 */
#include "exporters/autofdo/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"

#define INSTRUCTION_BYTES 4

struct build {
	const struct kx_export *x;
	const struct kx_afdo_options *o;
	struct kx_afdo_modules *modules;
	struct kx_afdo_trace *trace;
	struct kx_afdo *a;
	struct kx_afdo_losses *losses;
	uint32_t *symbols; /* of trace->functions, in its order */
	double cycles_per_sample;
};

static const struct kx_map_function *map_function(const struct build *b, uint32_t func)
{
	const struct kx_map *map = &b->x->names->map;

	return b->x->names->has_map && func && func <= map->nfunctions
		       ? &map->functions[func - 1] : NULL;
}

/* Symbols */

/*
 * gcc looks a function up by its assembler name, which DWARF has as linkage name or, in C, as the
 * name. C++ functions of internal linkage have only the short name there, so the name from the
 * symbol table (@known, or NULL) is better for these.
 */
static int symbol_of(struct build *b, struct kx_line_function *f, const char *known,
		     uint32_t *symbol)
{
	const char *name = f->name;
	uint32_t file;
	int r;

	if (f->user != UINT32_MAX) {
		*symbol = f->user;
		return 0;
	}
	if (known && !f->is_linkage_name &&
	    (!*name || !strncmp(known, "_Z", 2) || !strncmp(known, "_R", 2)))
		name = known;
	r = kx_afdo_file(b->a, f->file, &file);
	if (!r)
		r = kx_afdo_get_symbol(b->a, *name ? name : "?", file, symbol);
	if (!r)
		f->user = *symbol;
	return r;
}

static uint64_t nanoseconds(const struct build *b, uint64_t tsc)
{
	const json_t *clock = json_object_get(b->x->session, "clock");
	json_int_t ns = json_integer_value(json_object_get(clock, "monotonic_ns"));
	json_int_t ticks = json_integer_value(json_object_get(clock, "monotonic_ticks"));
	uint64_t t;

	/* CLOCK_MONOTONIC, if the recorder has noted it together with the ticks. */
	if (ns <= 0 || ticks <= 0)
		t = kx_trace_ns(tsc, b->x->tsc_hz);
	else if (tsc >= (uint64_t)ticks)
		t = (uint64_t)ns + kx_trace_ns(tsc - (uint64_t)ticks, b->x->tsc_hz);
	else
		t = (uint64_t)ns - kx_trace_ns((uint64_t)ticks - tsc, b->x->tsc_hz);
	return t ? t : 1; /* 0 means not known */
}

static int add_function(struct build *b, size_t index)
{
	const struct kx_afdo_hits *h = &b->trace->functions.items[index];
	const struct kx_map_function *f = map_function(b, h->func);
	const char *name = f ? f->symbol : kx_trace_name(b->x->names, h->func);
	struct kx_lines *lines = f ? kx_afdo_lines(b->modules, f->module) : NULL;
	struct kx_line_level levels[KX_LINE_LEVELS];
	struct kx_afdo_symbol *s;
	uint64_t first;
	int r;

	if (lines && kx_lines_at(lines, f->address, levels))
		r = symbol_of(b, levels[0].function, name, &b->symbols[index]);
	else
		r = kx_afdo_get_symbol(b->a, name, KX_AFDO_NONE, &b->symbols[index]);
	if (r)
		return r;
	s = &b->a->symbols[b->symbols[index]];
	if (kx_afdo_is_part(name))
		return 0;
	s->head += h->count;
	first = nanoseconds(b, h->first);
	if (!s->first_ns || first < s->first_ns)
		s->first_ns = first;
	return 0;
}

/* Places */

/* Line offset in the function; false if the line is not the function's own. */
static bool offset_of(const struct build *b, const struct kx_line_level *l, uint32_t *line,
		      uint32_t *disc)
{
	uint32_t max = b->o->version < 4 ? 0xffff : KX_AFDO_MAX_LINE;

	if (!l->line || !l->function->line || l->line < l->function->line || !l->file ||
	    !l->function->file || strcmp(l->file, l->function->file))
		return false;
	*line = l->line - l->function->line;
	*disc = b->o->discriminators ? l->disc : 0;
	return *line <= max && *disc <= KX_AFDO_MAX_DISCRIMINATOR;
}

/* The place of an address, added if it is new. *@place is NULL if the address has no line. */
static int place_of(struct build *b, const struct kx_line_level *levels, size_t n,
		    struct kx_afdo_place **place)
{
	struct kx_afdo_body *body;
	uint32_t symbol, line, disc;
	int r;

	*place = NULL;
	for (size_t i = 0; i < n; i++)
		if (!offset_of(b, &levels[i], &line, &disc))
			return 0;
	r = symbol_of(b, levels[0].function, NULL, &symbol);
	if (r)
		return r;
	body = &b->a->symbols[symbol].body;
	for (size_t i = 0; i + 1 < n; i++) {
		struct kx_afdo_body *outer = body;

		/* Adding a symbol may move all symbols, and with them the body of the first level. */
		r = symbol_of(b, levels[i + 1].function, NULL, &symbol);
		if (r)
			return r;
		if (!i)
			outer = &b->a->symbols[levels[0].function->user].body;
		offset_of(b, &levels[i], &line, &disc);
		body = kx_afdo_get_inlined(outer, line, disc, symbol);
		if (!body)
			return -ENOMEM;
	}
	offset_of(b, &levels[n - 1], &line, &disc);
	*place = kx_afdo_get_place(body, line, disc);
	return *place ? 0 : -ENOMEM;
}

/* Converts run-time addresses in known binaries to ELF virtual addresses. */
static void locate_all(struct build *b, struct kx_afdo_table *t)
{
	for (size_t i = 0; i < t->used; i++) {
		struct kx_afdo_hits *h = &t->items[i];
		uint64_t vaddr;
		uint32_t module;

		if (h->module || !kx_afdo_locate(b->modules, h->address, &module, &vaddr))
			continue;
		h->module = module + 1;
		h->address = vaddr;
	}
	kx_afdo_table_sort(t);
}

static uint32_t symbol_of_func(const struct build *b, uint32_t func)
{
	const struct kx_afdo_table *all = &b->trace->functions;

	return b->symbols[KX_COUNT_LEADING(all->used, i, all->items[i].func < func)];
}

/* All calls that one call instruction made: @n items. */
static int add_call(struct build *b, const struct kx_afdo_hits *hits, size_t n)
{
	struct kx_line_level levels[KX_LINE_LEVELS];
	struct kx_afdo_place *place = NULL;
	struct kx_lines *lines;
	uint64_t count = 0;
	size_t nlevels;
	int r;

	if (!hits->module) {
		b->losses->unknown_code++;
		return 0;
	}
	lines = kx_afdo_lines(b->modules, hits->module - 1);
	/* The return address may be of the next line. */
	nlevels = lines ? kx_lines_at(lines, hits->address - 1, levels) : 0;
	for (size_t i = 0; i < n; i++) {
		const struct kx_map_function *callee = map_function(b, hits[i].func);

		if (callee && !kx_afdo_may_call(b->modules, hits->module - 1, hits->address,
						callee)) {
			b->losses->tail_calls++;
			continue;
		}
		if (!place && nlevels) {
			r = place_of(b, levels, nlevels, &place);
			if (r)
				return r;
		}
		if (!place) {
			b->losses->no_line++;
			return 0;
		}
		r = kx_afdo_add_target(place, symbol_of_func(b, hits[i].func), hits[i].count);
		if (r)
			return r;
		count += hits[i].count;
	}
	if (place)
		kx_afdo_count(place, count);
	return 0;
}

static int add_calls(struct build *b)
{
	struct kx_afdo_table *t = &b->trace->callers;
	int r = 0;

	locate_all(b, t);
	for (size_t i = 0, n; i < t->used && !r; i += n) {
		for (n = 1; i + n < t->used && t->items[i + n].module == t->items[i].module &&
			    t->items[i + n].address == t->items[i].address; n++)
			;
		r = add_call(b, &t->items[i], n);
	}
	return r;
}

/* Lines of a whole function, and samples */

static int on_row(void *ctx, const struct kx_line_level *levels, size_t n, uint64_t bytes)
{
	struct build *b = ctx;
	struct kx_afdo_place *place;
	int r;

	/* A row without code before an inlined call may have the caller's line. */
	if (!bytes && n > 1)
		return 0;
	r = place_of(b, levels, n, &place);
	if (r || !place)
		return r;
	place->bytes += bytes;
	place->has_code = true;
	return 0;
}

static int add_rows(struct build *b, uint32_t module, uint64_t address, uint32_t symbol)
{
	struct kx_lines *lines = kx_afdo_lines(b->modules, module);
	int r = lines ? kx_lines_rows(lines, address, on_row, b) : -ENOENT;

	if (!r)
		b->a->symbols[symbol].has_rows = true;
	return r == -ENOENT ? 0 : r;
}

static int add_entries(struct build *b, const struct kx_map_function *f, uint64_t calls)
{
	struct kx_lines *lines = kx_afdo_lines(b->modules, f->module);
	struct kx_line_level levels[KX_LINE_LEVELS];
	size_t n = lines ? kx_lines_at(lines, f->address, levels) : 0;
	struct kx_afdo_place *place = NULL;
	int r = n ? place_of(b, levels, n, &place) : 0;

	if (place)
		place->entries += calls;
	return r;
}

static int add_rows_of_functions(struct build *b)
{
	int r = 0;

	for (size_t i = 0; i < b->trace->functions.used && !r; i++) {
		const struct kx_afdo_hits *h = &b->trace->functions.items[i];
		const struct kx_map_function *f = map_function(b, h->func);

		if (f)
			r = add_rows(b, f->module, f->address, b->symbols[i]);
		if (f && !r)
			r = add_entries(b, f, h->count);
	}
	return r;
}

static int add_sample(struct build *b, const struct kx_afdo_hits *h)
{
	struct kx_lines *lines = h->module ? kx_afdo_lines(b->modules, h->module - 1) : NULL;
	struct kx_line_level levels[KX_LINE_LEVELS];
	size_t n = lines ? kx_lines_at(lines, h->address, levels) : 0;
	struct kx_afdo_place *place = NULL;
	struct kx_afdo_symbol *s;
	int r = n ? place_of(b, levels, n, &place) : 0;

	/* A sample at the entry or a return most likely measures the probe. */
	if (r || !place || place->entries ||
	    kx_afdo_is_return(b->modules, h->module - 1, h->address))
		return r;
	place->samples += h->count;
	s = &b->a->symbols[levels[0].function->user];
	s->sampled = true;
	return s->has_rows ? 0 : add_rows(b, h->module - 1, h->address, levels[0].function->user);
}

static int add_samples(struct build *b)
{
	int r = 0;

	locate_all(b, &b->trace->samples);
	for (size_t i = 0; i < b->trace->samples.used && !r; i++)
		r = add_sample(b, &b->trace->samples.items[i]);
	return r;
}

static void complete(const struct build *b, const struct kx_afdo_symbol *s,
		     struct kx_afdo_body *body)
{
	for (size_t i = 0; i < body->nplaces; i++) {
		struct kx_afdo_place *p = &body->places[i];

		if (p->entries && s->sampled && !p->counted)
			kx_afdo_count(p, p->entries);
		if (p->samples && !p->counted) {
			uint64_t size = p->bytes > INSTRUCTION_BYTES ? p->bytes : INSTRUCTION_BYTES;
			double n = (double)p->samples * b->cycles_per_sample * INSTRUCTION_BYTES /
				   (double)size;

			kx_afdo_count(p, n < 1 ? 1 : (uint64_t)n);
		}
		if (!p->counted && p->has_code && b->o->fill && s->head)
			kx_afdo_count(p, s->head);
	}
	for (size_t i = 0; i < body->ninlined; i++)
		complete(b, s, body->inlined[i].body);
}

/* Decides which functions get a body in the file; see the head of this file. */
static void choose(struct build *b)
{
	for (size_t i = 0; i < b->a->nsymbols; i++) {
		struct kx_afdo_symbol *s = &b->a->symbols[i];
		bool has_body;

		complete(b, s, &s->body);
		has_body = kx_afdo_has_counts(&s->body);
		if (b->o->version == 4)
			s->top = s->head || has_body;
		else if (b->o->fill)
			s->top = has_body && (s->head || s->sampled);
		else
			s->top = has_body;
		b->losses->functions += s->head && !s->top;
	}
}

int kx_afdo_build(const struct kx_export *x, const struct kx_afdo_options *options,
		  struct kx_afdo_modules *modules, struct kx_afdo_trace *trace,
		  struct kx_afdo *out, struct kx_afdo_losses *losses)
{
	struct build b = { x, options, modules, trace, out, losses, NULL, 1 };
	json_int_t hz = json_integer_value(json_object_get(x->session, "sample_hz"));
	int r = 0;

	if (hz > 0)
		b.cycles_per_sample = (double)x->tsc_hz / (double)hz;
	b.symbols = calloc(trace->functions.used + 1, sizeof(*b.symbols));
	if (!b.symbols)
		return -ENOMEM;
	for (size_t i = 0; i < trace->functions.used && !r; i++)
		r = add_function(&b, i);
	if (!r)
		r = add_calls(&b);
	if (!r && (options->fill || trace->samples.used))
		r = add_rows_of_functions(&b);
	if (!r)
		r = add_samples(&b);
	if (!r) {
		choose(&b);
		r = kx_afdo_finish(out);
	}
	free(b.symbols);
	return r;
}
