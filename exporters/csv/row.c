// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/csv/row.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_BYTES   (16u << 20) /* of texts of functions: enough for 200,000 long names */
#define CACHE_IDS     (1u << 16)  /* ids that are kept at least, also without a map */

/* Neighbouring columns of one scope. */
struct run {
	enum kx_csv_scope scope;
	size_t first, n;
	char *text; /* KX_CSV_OF_THREAD: the cells, owned */
	size_t size;
	struct place { /* KX_CSV_OF_FUNCTION: by id */
		uint32_t at, size; /* in the cache's text; size 0: not there */
	} * places;
};

struct kx_csv_cells {
	struct kx_text_out made; /* cells before they go into a cache */
	struct run *runs;
	size_t nruns;
	uint32_t nids;
	char *text; /* of functions */
	uint32_t used;
};

static bool is_formula(const char *text)
{
	return *text && strchr("=+-@\t\r", *text);
}

void kx_csv_put_text(struct kx_text_out *o, const char *text)
{
	bool formula = is_formula(text);

	if (!strpbrk(text, ",\"\r\n")) {
		kx_text_str(o, formula ? "'" : "");
		kx_text_str(o, text);
		return;
	}
	kx_text_str(o, formula ? "\"'" : "\"");
	for (; *text; text++) {
		if (*text == '"')
			kx_text_char(o, '"');
		kx_text_char(o, *text);
	}
	kx_text_char(o, '"');
}

void kx_csv_put_signed(struct kx_text_out *o, int64_t value)
{
	if (value < 0)
		kx_text_char(o, '-');
	kx_text_u64(o, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void kx_csv_put_hex(struct kx_text_out *o, uint64_t value)
{
	char text[24];

	kx_text_bytes(o, text, (size_t)snprintf(text, sizeof(text), "0x%" PRIx64, value));
}

static inline void put_cells(struct kx_csv *c, struct kx_text_out *o, const struct run *r)
{
	const struct kx_csv_column *end = c->columns + c->ncolumns - 1;

	for (const struct kx_csv_column *i = c->columns + r->first, *stop = i + r->n; i < stop; i++) {
		i->put(c, o, i);
		if (i < end)
			kx_text_char(o, ',');
		else
			kx_text_bytes(o, "\r\n", 2);
	}
}

/* The cells of a run in ->made: memory and stored. */
static int make(struct kx_csv *c, const struct run *r)
{
	struct kx_text_out *made = &c->cells->made;

	made->stored = made->used = 0;
	put_cells(c, made, r);
	return kx_text_flush(made);
}

static int put_function(struct kx_csv *c, const struct run *r)
{
	struct kx_csv_cells *cells = c->cells;
	struct place *p = c->func < cells->nids ? &r->places[c->func] : NULL;
	int e;

	if (p && p->size) {
		kx_text_bytes(c->x->out, cells->text + p->at, p->size);
		return 0;
	}
	e = make(c, r);
	if (e)
		return e;
	kx_text_bytes(c->x->out, cells->made.memory, cells->made.stored);
	if (!p || cells->made.stored > CACHE_BYTES / 4)
		return 0;
	if (cells->made.stored > CACHE_BYTES - cells->used) {
		cells->used = 0;
		for (size_t i = 0; i < cells->nruns; i++)
			if (cells->runs[i].places)
				memset(cells->runs[i].places, 0, cells->nids * sizeof(*p));
	}
	*p = (struct place){ cells->used, (uint32_t)cells->made.stored };
	memcpy(cells->text + p->at, cells->made.memory, p->size);
	cells->used += p->size;
	return 0;
}

int kx_csv_row(struct kx_csv *c)
{
	const struct kx_csv_cells *cells = c->cells;
	struct kx_text_out *o = c->x->out;

	if (c->skip) {
		c->skip--;
		return 0;
	}
	for (const struct run *r = cells->runs, *end = r + cells->nruns; r < end; r++) {
		int e = 0;

		if (r->scope == KX_CSV_OF_ROW)
			put_cells(c, o, r);
		else if (r->scope == KX_CSV_OF_THREAD)
			kx_text_bytes(o, r->text, r->size);
		else
			e = put_function(c, r);
		if (e)
			return e;
	}
	return o->error;
}

int kx_csv_set_thread(struct kx_csv *c, const struct kx_call_thread *t)
{
	c->thread = t;
	for (size_t i = 0; i < c->cells->nruns; i++) {
		struct run *r = &c->cells->runs[i];
		char *text;
		int e;

		if (r->scope != KX_CSV_OF_THREAD)
			continue;
		e = make(c, r);
		if (e)
			return e;
		text = realloc(r->text, c->cells->made.stored);
		if (!text)
			return -ENOMEM;
		r->text = text;
		r->size = c->cells->made.stored;
		memcpy(text, c->cells->made.memory, r->size);
	}
	return 0;
}

int kx_csv_on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	(void)tsc;
	return kx_csv_set_thread(ctx, t);
}

static void put_names(const struct kx_csv *c)
{
	for (size_t i = 0; i < c->ncolumns; i++) {
		kx_csv_put_text(c->x->out, c->columns[i].name);
		kx_text_str(c->x->out, i + 1 < c->ncolumns ? "," : "\r\n");
	}
}

int kx_csv_begin(struct kx_csv *c)
{
	struct kx_csv_cells *cells = calloc(1, sizeof(*cells));
	const struct kx_symbolizer *names = c->x->names;
	struct run *r = NULL;

	c->cells = cells;
	if (!cells)
		return -ENOMEM;
	kx_text_init_memory(&cells->made);
	cells->runs = calloc(c->ncolumns, sizeof(*cells->runs));
	cells->text = malloc(CACHE_BYTES);
	if (!cells->runs || !cells->text)
		return -ENOMEM;
	cells->nids = CACHE_IDS;
	if (names->has_map && names->map.nfunctions >= cells->nids)
		cells->nids = (uint32_t)names->map.nfunctions + 1;
	for (size_t i = 0; i < c->ncolumns; i++) {
		enum kx_csv_scope scope = c->table->has_threads ? c->columns[i].scope : KX_CSV_OF_ROW;

		if (!r || r->scope != scope) {
			r = &cells->runs[cells->nruns++];
			*r = (struct run){ .scope = scope, .first = i };
			if (scope == KX_CSV_OF_FUNCTION)
				r->places = calloc(cells->nids, sizeof(*r->places));
			if (scope == KX_CSV_OF_FUNCTION && !r->places)
				return -ENOMEM;
		}
		r->n++;
	}
	put_names(c);
	return 0;
}

void kx_csv_end(struct kx_csv *c)
{
	struct kx_csv_cells *cells = c->cells;

	for (size_t i = 0; cells && i < cells->nruns; i++) {
		free(cells->runs[i].text);
		free(cells->runs[i].places);
	}
	if (cells) {
		free(cells->made.memory);
		free(cells->runs);
		free(cells->text);
	}
	free(cells);
	c->cells = NULL;
}
