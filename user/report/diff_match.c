// SPDX-License-Identifier: BSD-2-Clause
#include "report/diff_match.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/large.h"

/* What names must have in common. */
enum stage { BY_SYMBOL, BY_NAME, BY_NAME_ALONE };

struct function {
	uint32_t id, index; /* in the report */
	const char *symbol, *module;
	char *name;	/* readable, without what compilers add; from BY_NAME on */
	uint32_t other; /* index in the other report */
	uint32_t hash;
};

struct side {
	struct kx_symbolizer *names;
	struct function *functions; /* by id */
	size_t n;
};

static int compare_ids(const void *pa, const void *pb)
{
	const struct function *a = pa, *b = pb;

	return (a->id > b->id) - (a->id < b->id);
}

/* The symbol as the map has it; without a map there is only a name, which is copied. */
static int name_function(struct side *s, struct function *f)
{
	const struct kx_map *map = &s->names->map;

	f->module = kx_trace_module(s->names, f->id);
	if (s->names->has_map && f->id && f->id <= map->nfunctions)
		f->symbol = map->functions[f->id - 1].symbol;
	if (f->symbol)
		return 0;
	f->symbol = f->name = strdup(kx_trace_name(s->names, f->id));
	return f->name ? 0 : -ENOMEM;
}

static int read_side(struct side *s, const struct kx_report *report)
{
	struct kx_report_function r;
	int e = 0;

	s->n = kx_report_nfunctions(report);
	s->functions = kx_large_calloc(s->n + 1, sizeof(*s->functions));
	if (!s->functions)
		return -ENOMEM;
	for (size_t i = 0; i < s->n && !e; i++) {
		kx_report_get_function(report, i, &r);
		s->functions[i] = (struct function){ .id = r.id,
						     .index = (uint32_t)i,
						     .other = KX_DIFF_NONE };
		e = name_function(s, &s->functions[i]);
	}
	qsort(s->functions, s->n, sizeof(*s->functions), compare_ids);
	return e;
}

static bool is_clone_suffix(const char *dot)
{
	static const char *const suffixes[] = { ".isra.", ".constprop.", ".part.",
						".cold",  ".lto_priv.",	 ".llvm." };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (!strncmp(dot, suffixes[i], strlen(suffixes[i])))
			return true;
	return false;
}

/* Cuts off what differs from one build to the next. */
static void cut_name(char *name)
{
	char *clone = strstr(name, " [clone "), *hash = strstr(name, "::h");

	if (clone)
		*clone = 0;
	for (char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
		if (is_clone_suffix(dot)) {
			*dot = 0;
			break;
		}
	if (hash && strspn(hash + 3, "0123456789abcdef") == 16 && !hash[19])
		*hash = 0;
}

static int add_names(struct side *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct function *f = &s->functions[i];

		if (f->other != KX_DIFF_NONE || f->name)
			continue;
		f->name = strdup(kx_trace_name(s->names, f->id));
		if (!f->name)
			return -ENOMEM;
		cut_name(f->name);
	}
	return 0;
}

static const char *key_of(const struct function *f, enum stage stage)
{
	return stage == BY_SYMBOL ? f->symbol : f->name;
}

/* FNV-1a */
static uint32_t add_text(uint32_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}

static uint32_t hash_of(const struct function *f, enum stage stage)
{
	uint32_t hash = add_text(2166136261u, key_of(f, stage));

	return stage == BY_NAME_ALONE ? hash : add_text(hash * 31, f->module);
}

static bool are_same(const struct function *a, const struct function *b, enum stage stage)
{
	return a->hash == b->hash && !strcmp(key_of(a, stage), key_of(b, stage)) &&
	       (stage == BY_NAME_ALONE || !strcmp(a->module, b->module));
}

/* Functions that have no partner yet, in order of their ids: equal ones stand in that order from
 * their first place on. */
struct table {
	uint32_t *places; /* index + 1; 0: free */
	size_t size;	  /* a power of two */
};

static int fill_table(struct table *t, struct side *s, enum stage stage)
{
	for (t->size = 16; t->size < s->n * 2; t->size *= 2)
		;
	t->places = kx_large_calloc(t->size, sizeof(*t->places));
	if (!t->places)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++) {
		struct function *f = &s->functions[i];
		size_t at;

		if (f->other != KX_DIFF_NONE)
			continue;
		f->hash = hash_of(f, stage);
		for (at = f->hash & (t->size - 1); t->places[at]; at = (at + 1) & (t->size - 1))
			;
		t->places[at] = (uint32_t)i + 1;
	}
	return 0;
}

/* The first function in @t like @f without a partner, and how many there are. */
static struct function *find(const struct table *t, const struct side *s, const struct function *f,
			     enum stage stage, size_t *count)
{
	struct function *found = NULL;

	*count = 0;
	for (size_t at = f->hash & (t->size - 1); t->places[at]; at = (at + 1) & (t->size - 1)) {
		struct function *other = &s->functions[t->places[at] - 1];

		if (other->other != KX_DIFF_NONE || !are_same(f, other, stage))
			continue;
		found = found ? found : other;
		++*count;
		if (stage != BY_NAME_ALONE)
			break;
	}
	return found;
}

static int join(struct side *a, struct side *b, enum stage stage)
{
	struct table in_a = { 0 }, in_b = { 0 };
	size_t count_a, count_b;
	int e = fill_table(&in_a, a, stage);

	if (!e)
		e = fill_table(&in_b, b, stage);
	for (size_t i = 0; i < b->n && !e; i++) {
		struct function *f = &b->functions[i], *other;

		if (f->other != KX_DIFF_NONE)
			continue;
		other = find(&in_a, a, f, stage, &count_a);
		if (!other)
			continue;
		if (stage == BY_NAME_ALONE) {
			find(&in_b, b, f, stage, &count_b);
			if (count_a != 1 || count_b != 1)
				continue;
		}
		f->other = other->index;
		other->other = f->index;
	}
	free(in_a.places);
	free(in_b.places);
	return e;
}

static bool are_left(const struct side *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->functions[i].other == KX_DIFF_NONE)
			return true;
	return false;
}

static int list_pairs(const struct side *a, const struct side *b, struct kx_diff_pair **pairs,
		      size_t *npairs)
{
	struct kx_diff_pair *list = kx_large_calloc(a->n + b->n + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < a->n; i++)
		list[n++] = (struct kx_diff_pair){ a->functions[i].index, a->functions[i].other };
	for (size_t i = 0; i < b->n; i++)
		if (b->functions[i].other == KX_DIFF_NONE)
			list[n++] = (struct kx_diff_pair){ KX_DIFF_NONE, b->functions[i].index };
	*pairs = list;
	*npairs = n;
	return 0;
}

static void free_side(struct side *s)
{
	for (size_t i = 0; s->functions && i < s->n; i++)
		free(s->functions[i].name);
	free(s->functions);
}

int kx_diff_match(const struct kx_report *report_a, struct kx_symbolizer *names_a,
		  const struct kx_report *report_b, struct kx_symbolizer *names_b,
		  struct kx_diff_pair **pairs, size_t *npairs)
{
	struct side a = { .names = names_a }, b = { .names = names_b };
	int e = read_side(&a, report_a);

	if (!e)
		e = read_side(&b, report_b);
	if (!e)
		e = join(&a, &b, BY_SYMBOL);
	if (!e && are_left(&a) && are_left(&b)) {
		e = add_names(&a);
		if (!e)
			e = add_names(&b);
		if (!e)
			e = join(&a, &b, BY_NAME);
		if (!e)
			e = join(&a, &b, BY_NAME_ALONE);
	}
	if (!e)
		e = list_pairs(&a, &b, pairs, npairs);
	free_side(&a);
	free_side(&b);
	return e;
}
