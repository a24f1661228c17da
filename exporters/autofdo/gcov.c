// SPDX-License-Identifier: BSD-2-Clause
/*
 * Versions 2 and 3, as gcc 12.2's auto-profile.cc reads version 2 and google/autofdo writes
 * both. gcc finds a function by its name alone in version 2; of two with one name the last
 * in the file wins, so the one with more calls comes last.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/autofdo/write.h"

#define MAGIC 0x67636461u /* "gcda" */
#define TAG_SUMMARY 0xa8000000u
#define TAG_NAMES 0xaa000000u
#define TAG_FUNCTIONS 0xac000000u
#define TAG_MODULES 0xae000000u
#define TAG_WORKING_SET 0xaf000000u
#define WORKING_SET 128      /* entries; gcc skips them, autofdo's reader requires them */
#define HIST_TOPN_INDIRECT 7 /* HIST_TYPE_INDIR_CALL_TOPN */
#define MAX_LINE 0xffffu
#define NO_FILE 0xffffffffu

struct gcov {
	const struct kx_afdo *a;
	struct kx_bytes *out;
	int version;
	uint32_t *names; /* index in the name table, by symbol id - 1 */
	uint64_t dropped;
};

static void u32(struct gcov *g, uint32_t v)
{
	kx_bytes_le(g->out, v, 4);
}

static void u64(struct gcov *g, uint64_t v)
{
	kx_bytes_le(g->out, v, 8);
}

static void string(struct gcov *g, const char *text, size_t length)
{
	u32(g, (uint32_t)length + 1);
	kx_bytes_put(g->out, text, length);
	kx_bytes_u8(g->out, 0);
}

/* A section's length follows its tag, in words of four bytes; every reader skips it. */
static size_t open_section(struct gcov *g, uint32_t tag)
{
	u32(g, tag);
	u32(g, 0);
	return g->out->size;
}

static void close_section(struct gcov *g, size_t start)
{
	size_t words = (g->out->size - start + 3) / 4;

	for (unsigned i = 0; i < 4 && !g->out->failed; i++)
		g->out->data[start - 4 + i] = (uint8_t)(words >> 8 * i);
}

static void summary(struct gcov *g)
{
	const struct kx_afdo_summary *s = &g->a->summary;

	u32(g, TAG_SUMMARY);
	u64(g, s->total);
	u64(g, s->max);
	u64(g, s->max_head);
	u64(g, s->num_counts);
	u64(g, s->num_functions);
	u64(g, s->ncutoffs);
	for (size_t i = 0; i < s->ncutoffs; i++) {
		u32(g, s->cutoffs[i].cutoff);
		u64(g, s->cutoffs[i].min_count);
		u64(g, s->cutoffs[i].num_counts);
	}
}

static size_t name_length(const char *name)
{
	/* Cut at '.', as gcc cuts both names, but never to nothing. */
	return *name == '.' ? strlen(name) : strcspn(name, ".");
}

struct name {
	const char *text;
	size_t length;
	uint32_t id; /* of the symbol */
	uint32_t file;
};

static int compare_names(const void *x, const void *y)
{
	const struct name *a = x, *b = y;
	size_t shorter = a->length < b->length ? a->length : b->length;
	int r = memcmp(a->text, b->text, shorter);

	if (r)
		return r;
	if (a->length != b->length)
		return a->length < b->length ? -1 : 1;
	return a->file != b->file ? (a->file < b->file ? -1 : 1) : 0;
}

static int names(struct gcov *g)
{
	const struct kx_afdo *a = g->a;
	struct name *list = malloc((a->norder + 1) * sizeof(*list));
	uint32_t n = 0;
	size_t start;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < a->norder; i++) {
		const struct kx_afdo_symbol *s = &a->symbols[a->order[i]];
		bool has_file = g->version >= 3 && s->file != KX_AFDO_NONE;

		list[i] = (struct name){ s->name, name_length(s->name), s->id,
					 has_file ? a->file_rank[s->file] : NO_FILE };
	}
	qsort(list, a->norder, sizeof(*list), compare_names);
	for (size_t i = 0; i < a->norder; i++) {
		n += !i || compare_names(&list[i - 1], &list[i]);
		g->names[list[i].id - 1] = n; /* 0 is the empty name, which is no function */
	}

	start = open_section(g, TAG_NAMES);
	if (g->version >= 3) {
		u32(g, (uint32_t)a->nfile_order);
		for (size_t i = 0; i < a->nfile_order; i++) {
			const char *path = a->files[a->file_order[i]];

			string(g, path, strlen(path));
		}
	}
	u32(g, n + 1);
	string(g, "", 0);
	if (g->version >= 3)
		u32(g, NO_FILE);
	for (size_t i = 0; i < a->norder; i++) {
		if (i && !compare_names(&list[i - 1], &list[i]))
			continue;
		string(g, list[i].text, list[i].length);
		if (g->version >= 3)
			u32(g, list[i].file);
	}
	close_section(g, start);
	free(list);
	return 0;
}

/*
 * gcc 12 has no discriminators: it keeps the last of a line's records. So a line's
 * largest count comes last; later versions use each record.
 */
static int compare_places(const void *x, const void *y)
{
	const struct kx_afdo_place *a = *(const struct kx_afdo_place *const *)x;
	const struct kx_afdo_place *b = *(const struct kx_afdo_place *const *)y;

	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	return a->disc < b->disc ? -1 : a->disc > b->disc;
}

static void place(struct gcov *g, const struct kx_afdo_place *p)
{
	u32(g, p->line << 16 | p->disc);
	u32(g, (uint32_t)p->ntargets);
	u64(g, p->count);
	for (size_t i = 0; i < p->ntargets; i++) {
		u32(g, HIST_TOPN_INDIRECT);
		u64(g, g->names[g->a->symbols[p->targets[i].symbol].id - 1]);
		u64(g, p->targets[i].count);
	}
}

static int instance(struct gcov *g, uint32_t symbol, const struct kx_afdo_body *body)
{
	const struct kx_afdo_place **list = malloc((body->nplaces + 1) * sizeof(const void *));
	size_t nplaces = 0, ninlined = 0;
	int r = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < body->nplaces; i++) {
		if (body->places[i].line <= MAX_LINE)
			list[nplaces++] = &body->places[i];
		else
			g->dropped++;
	}
	for (size_t i = 0; i < body->ninlined; i++)
		ninlined += body->inlined[i].line <= MAX_LINE;
	g->dropped += body->ninlined - ninlined;
	qsort(list, nplaces, sizeof(*list), compare_places);

	u32(g, g->names[g->a->symbols[symbol].id - 1]);
	u32(g, (uint32_t)nplaces);
	u32(g, (uint32_t)ninlined);
	for (size_t i = 0; i < nplaces; i++)
		place(g, list[i]);
	free(list);
	for (size_t i = 0; i < body->ninlined && !r; i++) {
		const struct kx_afdo_inlined *in = &body->inlined[i];

		if (in->line > MAX_LINE)
			continue;
		u32(g, in->line << 16 | in->disc);
		r = instance(g, in->symbol, in->body);
	}
	return r;
}

static int compare_heads(const void *x, const void *y, void *ctx)
{
	const struct kx_afdo *a = ctx;
	const struct kx_afdo_symbol *s = &a->symbols[*(const uint32_t *)x];
	const struct kx_afdo_symbol *t = &a->symbols[*(const uint32_t *)y];

	if (s->head != t->head)
		return s->head < t->head ? -1 : 1;
	return s->id < t->id ? -1 : 1;
}

static int functions(struct gcov *g)
{
	const struct kx_afdo *a = g->a;
	uint32_t *list = malloc((a->norder + 1) * sizeof(*list));
	size_t n = 0, start;
	int r = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < a->norder; i++)
		if (a->symbols[a->order[i]].top)
			list[n++] = a->order[i];
	qsort_r(list, n, sizeof(*list), compare_heads, (void *)(uintptr_t)a);
	start = open_section(g, TAG_FUNCTIONS);
	u32(g, (uint32_t)n);
	for (size_t i = 0; i < n && !r; i++) {
		const struct kx_afdo_symbol *s = &a->symbols[list[i]];

		u64(g, s->head);
		if (g->version >= 3)
			u64(g, s->first_ns);
		r = instance(g, list[i], &s->body);
	}
	close_section(g, start);
	free(list);
	return r;
}

int kx_afdo_write_gcov(const struct kx_afdo *a, int version, struct kx_bytes *out,
		       uint64_t *dropped)
{
	struct gcov g = { .a = a, .out = out, .version = version };
	int r;

	g.names = calloc(a->norder + 1, sizeof(*g.names));
	if (!g.names)
		return -ENOMEM;
	u32(&g, MAGIC);
	u32(&g, (uint32_t)version);
	u32(&g, 0);
	if (version >= 3)
		summary(&g);
	r = names(&g);
	if (!r)
		r = functions(&g);
	u32(&g, TAG_MODULES); /* none, but gcc requires the section */
	u32(&g, 0);
	u32(&g, 0);
	u32(&g, TAG_WORKING_SET);
	u32(&g, 3 * WORKING_SET);
	for (int i = 0; i < WORKING_SET; i++) {
		u32(&g, 0);
		u64(&g, 0);
	}
	free(g.names);
	*dropped = g.dropped;
	return out->failed ? -ENOMEM : r;
}
