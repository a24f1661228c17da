// SPDX-License-Identifier: BSD-2-Clause
/*
 * Version 4, normal and compact (RFC of April 2026). Sections are in the order of their
 * numbers, without gaps: summary, file names, string table and symbol names of each
 * file, then one body for each function. Offsets and sizes include the byte that a section
 * starts with. Everything is big-endian, or a varint in compact form.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/autofdo/write.h"

#define COMPACT 0x80
#define HAS_DISCRIMINATOR 0x80
#define TERMINAL 0x80
#define MAX_CHILDREN 127
#define MAX_LABEL 0xffff

enum section { STRING_TABLE = 1, SUMMARY, FILE_NAMES, SYMBOL_NAMES, SYMBOL_INFO };

enum location { ZERO = 1, NORMAL, WIDE, CALLED_FN, CALLED_FNS, INLINED_FN };

struct v4 {
	const struct kx_afdo *a;
	bool compact;
	struct kx_bytes *sections; /* in file order */
	size_t nsections;
	uint32_t *infos;           /* section of a symbol's body, by id - 1 */
};

/* A number: @bytes big-endian bytes, in compact form a varint. */
static void number(const struct v4 *v, struct kx_bytes *b, uint64_t value, unsigned bytes)
{
	if (v->compact)
		kx_bytes_varint(b, value);
	else
		kx_bytes_be(b, value, bytes);
}

static struct kx_bytes *open_section(struct v4 *v, enum section type)
{
	struct kx_bytes *b = &v->sections[v->nsections++];

	kx_bytes_u8(b, (uint8_t)(type | (v->compact ? COMPACT : 0)));
	return b;
}

static const struct kx_afdo_symbol *symbol_at(const struct v4 *v, size_t index)
{
	return &v->a->symbols[v->a->order[index]];
}

static uint32_t rank_of(const struct v4 *v, const struct kx_afdo_symbol *s)
{
	/* Symbols of no known file come last. */
	return s->file == KX_AFDO_NONE ? (uint32_t)v->a->nfile_order : v->a->file_rank[s->file];
}

static void summary(struct v4 *v)
{
	struct kx_bytes *b = open_section(v, SUMMARY);
	const struct kx_afdo_summary *s = &v->a->summary;

	number(v, b, s->total, 8);
	number(v, b, s->max, 8);
	number(v, b, s->max_head, 8);
	number(v, b, s->num_counts, 8);
	number(v, b, s->num_functions, 8);
	number(v, b, s->ncutoffs, 8);
	for (size_t i = 0; i < s->ncutoffs; i++) {
		number(v, b, s->cutoffs[i].cutoff, 4);
		number(v, b, s->cutoffs[i].min_count, 8);
		number(v, b, s->cutoffs[i].num_counts, 8);
	}
}

/* The index after the last symbol of the file with @rank, starting at @from. */
static size_t end_of_file(const struct v4 *v, size_t from, uint32_t rank)
{
	while (from < v->a->norder && rank_of(v, symbol_at(v, from)) == rank)
		from++;
	return from;
}

static void file_names(struct v4 *v)
{
	struct kx_bytes *b = open_section(v, FILE_NAMES);
	uint32_t nfiles = (uint32_t)v->a->nfile_order + 1;
	size_t from = 0;

	number(v, b, nfiles, 4);
	for (uint32_t i = 0; i < nfiles; i++) {
		const char *name = i + 1 < nfiles ? v->a->files[v->a->file_order[i]] : "";
		size_t size = strlen(name) + 1, to = end_of_file(v, from, i);

		number(v, b, size, 4);
		kx_bytes_put(b, name, size);
		number(v, b, 2 + 2 * i, 4);
		number(v, b, 3 + 2 * i, 4);
		number(v, b, from + 1, 4); /* ids start with 1 */
		number(v, b, to + 1, 4);
		from = to;
	}
}

/* The trie of one file's names, which are sorted; a name's number is its place among them. */
struct trie {
	const struct v4 *v;
	struct kx_bytes *b;
	size_t first; /* symbol of the file */
};

static const unsigned char *name_at(const struct trie *t, size_t index)
{
	return (const unsigned char *)symbol_at(t->v, t->first + index)->name;
}

/* Past the last name of [from, to) that has the same byte at @depth as the first. */
static size_t end_of_group(const struct trie *t, size_t from, size_t to, size_t depth)
{
	unsigned char c = name_at(t, from)[depth];

	while (from < to && name_at(t, from)[depth] == c)
		from++;
	return from;
}

static void trie_node(const struct trie *t, size_t from, size_t to, size_t depth);

static void child(const struct trie *t, size_t from, size_t to, size_t depth)
{
	const unsigned char *first = name_at(t, from), *last = name_at(t, to - 1);
	size_t end = depth, part;

	/* Names are sorted: a prefix of the first and the last is a prefix of all. */
	while (first[end] && first[end] == last[end])
		end++;
	for (;;) {
		part = end - depth < MAX_LABEL ? end - depth : MAX_LABEL;
		number(t->v, t->b, part, 2);
		kx_bytes_put(t->b, first + depth, part);
		depth += part;
		if (depth == end)
			break;
		kx_bytes_u8(t->b, 1);
	}
	trie_node(t, from, to, depth);
}

/* The children [from, to) of a node, after its first byte and number were @flags and @id. */
static void children(const struct trie *t, size_t from, size_t to, size_t depth, uint8_t flags,
		     size_t id)
{
	size_t n = 0, shown;

	for (size_t at = from; at < to; at = end_of_group(t, at, to, depth))
		n++;
	/* Children beyond the limit of one byte go below a last child without a label. */
	shown = n > MAX_CHILDREN ? MAX_CHILDREN - 1 : n;
	kx_bytes_u8(t->b, (uint8_t)(flags | (n > MAX_CHILDREN ? MAX_CHILDREN : n)));
	if (flags)
		number(t->v, t->b, id, 4);
	for (size_t i = 0; i < shown; i++) {
		size_t end = end_of_group(t, from, to, depth);

		child(t, from, end, depth);
		from = end;
	}
	if (n > MAX_CHILDREN) {
		number(t->v, t->b, 0, 2);
		children(t, from, to, depth, 0, 0);
	}
}

static void trie_node(const struct trie *t, size_t from, size_t to, size_t depth)
{
	bool ends_here = from < to && !name_at(t, from)[depth];

	children(t, from + ends_here, to, depth, ends_here ? TERMINAL : 0, from);
}

static void names(struct v4 *v, size_t from, size_t to)
{
	struct trie t = { .v = v, .b = open_section(v, STRING_TABLE), .first = from };
	struct kx_bytes *b;

	number(v, t.b, to - from, 4);
	trie_node(&t, 0, to - from, 0);

	b = open_section(v, SYMBOL_NAMES);
	number(v, b, to - from, 4);
	for (size_t i = from; i < to; i++) {
		number(v, b, i - from, 4);
		number(v, b, i + 1, 4);
		number(v, b, v->infos[i], 4);
	}
}

/* Bodies */

static void location(const struct v4 *v, struct kx_bytes *b, enum location type, uint32_t line, uint32_t disc)
{
	kx_bytes_u8(b, (uint8_t)(type | (disc ? HAS_DISCRIMINATOR : 0)));
	number(v, b, line, 3);
	if (disc)
		number(v, b, disc, 2);
}

static void count(const struct v4 *v, struct kx_bytes *b, const struct kx_afdo_place *p)
{
	if (!p->counted)
		return;
	if (!p->count) {
		location(v, b, ZERO, p->line, p->disc);
	} else if (p->count <= UINT32_MAX) {
		location(v, b, NORMAL, p->line, p->disc);
		number(v, b, p->count, 4);
	} else {
		location(v, b, WIDE, p->line, p->disc);
		number(v, b, p->count, 8);
	}
}

static void calls(const struct v4 *v, struct kx_bytes *b, const struct kx_afdo_place *p)
{
	if (!p->ntargets)
		return;
	location(v, b, p->ntargets == 1 ? CALLED_FN : CALLED_FNS, p->line, p->disc);
	if (p->ntargets > 1)
		number(v, b, p->ntargets, 4);
	for (size_t i = 0; i < p->ntargets; i++) {
		number(v, b, v->a->symbols[p->targets[i].symbol].id, 4);
		number(v, b, p->targets[i].count, 8);
	}
}

static void body(const struct v4 *v, struct kx_bytes *b, const struct kx_afdo_body *of)
{
	size_t n = of->ninlined, in = 0;

	for (size_t i = 0; i < of->nplaces; i++)
		n += (size_t)of->places[i].counted + (of->places[i].ntargets > 0);
	number(v, b, n, 4);
	for (size_t i = 0; i < of->nplaces || in < of->ninlined; ) {
		const struct kx_afdo_place *p = i < of->nplaces ? &of->places[i] : NULL;
		const struct kx_afdo_inlined *q = in < of->ninlined ? &of->inlined[in] : NULL;

		if (p && (!q || p->line < q->line || (p->line == q->line && p->disc <= q->disc))) {
			count(v, b, p);
			calls(v, b, p);
			i++;
		} else {
			location(v, b, INLINED_FN, q->line, q->disc);
			number(v, b, v->a->symbols[q->symbol].id, 4);
			body(v, b, q->body);
			in++;
		}
	}
}

static void info(struct v4 *v, const struct kx_afdo_symbol *s)
{
	struct kx_bytes *b = open_section(v, SYMBOL_INFO);

	number(v, b, s->head, 8);
	number(v, b, s->first_ns, 8);
	body(v, b, &s->body);
}

/*
 * The header and the table of sections. In compact form its own length depends on the offsets in
 * it, and these on its length: it is written again until both agree.
 */
static void header(const struct v4 *v, struct kx_bytes *out)
{
	size_t length = 0;

	do {
		uint64_t offset = length = out->size;

		out->size = 0;
		kx_bytes_str(out, "gcov");
		kx_bytes_put(out, "\0\0\0\4", 4);
		kx_bytes_u8(out, v->compact ? COMPACT : 0);
		number(v, out, v->nsections - 2, 7); /* without summary and file names */
		for (size_t i = 0; i < v->nsections; i++) {
			number(v, out, offset, 8);
			number(v, out, v->sections[i].size, 8);
			offset += v->sections[i].size;
		}
	} while (out->size != length && !out->failed);
}

int kx_afdo_write_v4(const struct kx_afdo *a, bool compact, struct kx_bytes *out)
{
	struct v4 v = { .a = a, .compact = compact };
	size_t nfiles = a->nfile_order + 1, ntop = 0, from = 0;
	bool failed = false;

	v.infos = malloc((a->norder + 1) * sizeof(*v.infos));
	v.sections = calloc(2 + 2 * nfiles + a->norder, sizeof(*v.sections));
	if (!v.infos || !v.sections) {
		free(v.infos);
		free(v.sections);
		return -ENOMEM;
	}
	for (size_t i = 0; i < a->norder; i++)
		v.infos[i] = symbol_at(&v, i)->top ? (uint32_t)(2 + 2 * nfiles + ntop++)
						   : KX_AFDO_NONE;
	summary(&v);
	file_names(&v);
	for (uint32_t i = 0; i < nfiles; i++) {
		size_t to = end_of_file(&v, from, i);

		names(&v, from, to);
		from = to;
	}
	for (size_t i = 0; i < a->norder; i++)
		if (symbol_at(&v, i)->top)
			info(&v, symbol_at(&v, i));

	for (size_t i = 0; i < v.nsections; i++)
		failed |= v.sections[i].failed;
	header(&v, out);
	for (size_t i = 0; i < v.nsections; i++) {
		kx_bytes_put(out, v.sections[i].data, v.sections[i].size);
		kx_bytes_free(&v.sections[i]);
	}
	free(v.infos);
	free(v.sections);
	return failed || out->failed ? -ENOMEM : 0;
}
