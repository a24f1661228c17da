// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/autofdo/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const uint32_t cutoffs[KX_AFDO_CUTOFFS] = {
	10000,	100000, 200000, 300000, 400000, 500000, 600000, 700000,
	800000, 900000, 950000, 990000, 999000, 999900, 999990, 999999,
};

static void free_body(struct kx_afdo_body *body)
{
	for (size_t i = 0; i < body->nplaces; i++)
		free(body->places[i].targets);
	for (size_t i = 0; i < body->ninlined; i++) {
		free_body(body->inlined[i].body);
		free(body->inlined[i].body);
	}
	free(body->places);
	free(body->inlined);
}

void kx_afdo_free(struct kx_afdo *a)
{
	for (size_t i = 0; i < a->nsymbols; i++) {
		free_body(&a->symbols[i].body);
		free(a->symbols[i].name);
	}
	for (size_t i = 0; i < a->nfiles; i++)
		free(a->files[i]);
	free(a->symbols);
	free(a->symbol_slots);
	free(a->files);
	free(a->order);
	free(a->file_order);
	free(a->file_rank);
	memset(a, 0, sizeof(*a));
}

int kx_afdo_file(struct kx_afdo *a, const char *path, uint32_t *file)
{
	*file = KX_AFDO_NONE;
	if (!path || !*path)
		return 0;
	/* There are few files, and the newest ones are looked up most. */
	for (size_t i = a->nfiles; i--; ) {
		if (!strcmp(a->files[i], path)) {
			*file = (uint32_t)i;
			return 0;
		}
	}
	if (KX_ARRAY_RESERVE(a->files, a->files_size, a->nfiles))
		return -ENOMEM;
	a->files[a->nfiles] = strdup(path);
	if (!a->files[a->nfiles])
		return -ENOMEM;
	*file = (uint32_t)a->nfiles++;
	return 0;
}

size_t kx_afdo_name_length(const char *name)
{
	static const char *const suffixes[] = { ".isra.", ".part.", ".constprop.", ".cold",
						".lto_priv.", ".llvm." };
	size_t length = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		const char *at = strstr(name, suffixes[i]);

		if (at && at > name && (size_t)(at - name) < length)
			length = (size_t)(at - name);
	}
	/* a name that starts with '@' has no version */
	return length ? length : strlen(name);
}

bool kx_afdo_is_part(const char *name)
{
	return strstr(name, ".part.") || strstr(name, ".cold");
}

static size_t hash(const char *name, size_t length, uint32_t file)
{
	uint64_t h = 0xcbf29ce484222325 ^ file;

	for (size_t i = 0; i < length; i++)
		h = (h ^ (unsigned char)name[i]) * 0x100000001b3;
	return (size_t)(h ^ h >> 32);
}

static uint32_t *slot_of(struct kx_afdo *a, const char *name, size_t length, uint32_t file)
{
	size_t at = hash(name, length, file) & (a->nslots - 1);

	for (;; at = (at + 1) & (a->nslots - 1)) {
		uint32_t index = a->symbol_slots[at];
		const struct kx_afdo_symbol *s = &a->symbols[index];

		if (index == KX_AFDO_NONE ||
		    (s->file == file && !strncmp(s->name, name, length) && !s->name[length]))
			return &a->symbol_slots[at];
	}
}

static int rehash(struct kx_afdo *a)
{
	size_t size = a->nslots ? 2 * a->nslots : 256;
	uint32_t *slots;

	if (2 * (a->nsymbols + 1) <= a->nslots)
		return 0;
	slots = malloc(size * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots, 0xff, size * sizeof(*slots));
	free(a->symbol_slots);
	a->symbol_slots = slots;
	a->nslots = size;
	for (size_t i = 0; i < a->nsymbols; i++) {
		const struct kx_afdo_symbol *s = &a->symbols[i];

		*slot_of(a, s->name, strlen(s->name), s->file) = (uint32_t)i;
	}
	return 0;
}

int kx_afdo_get_symbol(struct kx_afdo *a, const char *name, uint32_t file, uint32_t *symbol)
{
	size_t length = kx_afdo_name_length(name);
	uint32_t *slot;

	if (rehash(a))
		return -ENOMEM;
	slot = slot_of(a, name, length, file);
	if (*slot == KX_AFDO_NONE) {
		struct kx_afdo_symbol *s;

		if (KX_ARRAY_RESERVE(a->symbols, a->symbols_size, a->nsymbols))
			return -ENOMEM;
		s = &a->symbols[a->nsymbols];
		*s = (struct kx_afdo_symbol){ .name = strndup(name, length), .file = file };
		if (!s->name)
			return -ENOMEM;
		*slot = (uint32_t)a->nsymbols++;
	}
	*symbol = *slot;
	return 0;
}

struct kx_afdo_place *kx_afdo_get_place(struct kx_afdo_body *body, uint32_t line, uint32_t disc)
{
	size_t low = 0, high = body->nplaces;
	struct kx_afdo_place *p;

	while (low < high) {
		size_t middle = (low + high) / 2;

		p = &body->places[middle];
		if (p->line == line && p->disc == disc)
			return p;
		if (p->line < line || (p->line == line && p->disc < disc))
			low = middle + 1;
		else
			high = middle;
	}
	if (KX_ARRAY_RESERVE(body->places, body->places_size, body->nplaces))
		return NULL;
	p = &body->places[low];
	memmove(p + 1, p, (body->nplaces++ - low) * sizeof(*p));
	*p = (struct kx_afdo_place){ .line = line, .disc = disc };
	return p;
}

struct kx_afdo_body *kx_afdo_get_inlined(struct kx_afdo_body *body, uint32_t line, uint32_t disc,
				     uint32_t symbol)
{
	struct kx_afdo_inlined *in;

	for (size_t i = 0; i < body->ninlined; i++) {
		in = &body->inlined[i];
		if (in->line == line && in->disc == disc && in->symbol == symbol)
			return in->body;
	}
	if (KX_ARRAY_RESERVE(body->inlined, body->inlined_size, body->ninlined))
		return NULL;
	in = &body->inlined[body->ninlined];
	*in = (struct kx_afdo_inlined){ line, disc, symbol, calloc(1, sizeof(*in->body)) };
	if (in->body)
		body->ninlined++;
	return in->body;
}

int kx_afdo_add_target(struct kx_afdo_place *place, uint32_t symbol, uint64_t count)
{
	struct kx_afdo_target *targets;

	for (size_t i = 0; i < place->ntargets; i++) {
		if (place->targets[i].symbol == symbol) {
			place->targets[i].count += count;
			return 0;
		}
	}
	targets = realloc(place->targets, (place->ntargets + 1) * sizeof(*targets));
	if (!targets)
		return -ENOMEM;
	targets[place->ntargets++] = (struct kx_afdo_target){ symbol, count };
	place->targets = targets;
	return 0;
}

void kx_afdo_count(struct kx_afdo_place *place, uint64_t count)
{
	if (!place->counted || count > place->count)
		place->count = count;
	place->counted = true;
}

bool kx_afdo_has_counts(const struct kx_afdo_body *body)
{
	for (size_t i = 0; i < body->nplaces; i++)
		if (body->places[i].counted || body->places[i].ntargets)
			return true;
	for (size_t i = 0; i < body->ninlined; i++)
		if (kx_afdo_has_counts(body->inlined[i].body))
			return true;
	return false;
}

/* Finishing */

static void prune(struct kx_afdo_body *body)
{
	size_t n = 0;

	for (size_t i = 0; i < body->nplaces; i++)
		if (body->places[i].counted || body->places[i].ntargets)
			body->places[n++] = body->places[i];
	body->nplaces = n;
	n = 0;
	for (size_t i = 0; i < body->ninlined; i++) {
		struct kx_afdo_inlined in = body->inlined[i];

		if (kx_afdo_has_counts(in.body)) {
			prune(in.body);
			body->inlined[n++] = in;
		} else {
			free_body(in.body);
			free(in.body);
		}
	}
	body->ninlined = n;
}

static void mark_body(struct kx_afdo *a, const struct kx_afdo_body *body)
{
	for (size_t i = 0; i < body->nplaces; i++)
		for (size_t t = 0; t < body->places[i].ntargets; t++)
			a->symbols[body->places[i].targets[t].symbol].id = 1;
	for (size_t i = 0; i < body->ninlined; i++) {
		a->symbols[body->inlined[i].symbol].id = 1;
		mark_body(a, body->inlined[i].body);
	}
}

static int compare_files(const void *x, const void *y, void *ctx)
{
	const struct kx_afdo *a = ctx;

	return strcmp(a->files[*(const uint32_t *)x], a->files[*(const uint32_t *)y]);
}

static int compare_symbols(const void *x, const void *y, void *ctx)
{
	const struct kx_afdo *a = ctx;
	const struct kx_afdo_symbol *s = &a->symbols[*(const uint32_t *)x];
	const struct kx_afdo_symbol *t = &a->symbols[*(const uint32_t *)y];
	uint32_t f = s->file == KX_AFDO_NONE ? KX_AFDO_NONE : a->file_rank[s->file];
	uint32_t g = t->file == KX_AFDO_NONE ? KX_AFDO_NONE : a->file_rank[t->file];

	return f != g ? (f < g ? -1 : 1) : strcmp(s->name, t->name);
}

static int compare_targets(const void *x, const void *y, void *ctx)
{
	const struct kx_afdo *a = ctx;
	const struct kx_afdo_target *s = x, *t = y;

	return a->symbols[s->symbol].id < a->symbols[t->symbol].id ? -1 : 1;
}

static int compare_inlined(const void *x, const void *y, void *ctx)
{
	const struct kx_afdo *a = ctx;
	const struct kx_afdo_inlined *s = x, *t = y;

	if (s->line != t->line)
		return s->line < t->line ? -1 : 1;
	if (s->disc != t->disc)
		return s->disc < t->disc ? -1 : 1;
	return a->symbols[s->symbol].id < a->symbols[t->symbol].id ? -1 : 1;
}

static void sort_body(struct kx_afdo *a, struct kx_afdo_body *body)
{
	for (size_t i = 0; i < body->nplaces; i++) {
		struct kx_afdo_place *p = &body->places[i];

		if (p->ntargets > 1)
			qsort_r(p->targets, p->ntargets, sizeof(*p->targets), compare_targets, a);
	}
	if (body->ninlined > 1)
		qsort_r(body->inlined, body->ninlined, sizeof(*body->inlined), compare_inlined, a);
	for (size_t i = 0; i < body->ninlined; i++)
		sort_body(a, body->inlined[i].body);
}

static size_t number_of_counts(const struct kx_afdo_body *body)
{
	size_t n = 0;

	for (size_t i = 0; i < body->nplaces; i++)
		n += body->places[i].counted;
	for (size_t i = 0; i < body->ninlined; i++)
		n += number_of_counts(body->inlined[i].body);
	return n;
}

static void take_counts(const struct kx_afdo_body *body, uint64_t *counts, size_t *n)
{
	for (size_t i = 0; i < body->nplaces; i++)
		if (body->places[i].counted)
			counts[(*n)++] = body->places[i].count;
	for (size_t i = 0; i < body->ninlined; i++)
		take_counts(body->inlined[i].body, counts, n);
}

static int compare_counts(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return a > b ? -1 : a < b;
}

/*
 * Call target counts are left out of the total. A cutoff's entry is the smallest count
 * needed to reach that share going down from the hottest, and how many counts are at least
 * that; this reproduces the example of the RFC.
 */
static void summarize(struct kx_afdo_summary *s, const uint64_t *counts, size_t n)
{
	unsigned __int128 total = 0, sum = 0;
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		total += counts[i];
	s->total = total > UINT64_MAX ? UINT64_MAX : (uint64_t)total;
	s->max = n ? counts[0] : 0;
	s->num_counts = n;
	if (!s->total)
		return;
	for (size_t c = 0; c < KX_AFDO_CUTOFFS; c++) {
		unsigned __int128 wanted = total * cutoffs[c] / 1000000;

		/* Equal counts belong together. */
		while (at < n && (sum < wanted || !at || counts[at] == counts[at - 1]))
			sum += counts[at++];
		s->cutoffs[c] = (struct kx_afdo_cutoff){ cutoffs[c], counts[at - 1], at };
	}
	s->ncutoffs = KX_AFDO_CUTOFFS;
}

static int make_summary(struct kx_afdo *a)
{
	struct kx_afdo_summary *s = &a->summary;
	uint64_t *counts;
	size_t n = 0;

	for (size_t i = 0; i < a->nsymbols; i++)
		if (a->symbols[i].top)
			n += number_of_counts(&a->symbols[i].body);
	counts = malloc((n + 1) * sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < a->nsymbols; i++) {
		const struct kx_afdo_symbol *sym = &a->symbols[i];

		if (!sym->top)
			continue;
		take_counts(&sym->body, counts, &n);
		s->num_functions++;
		if (sym->head > s->max_head)
			s->max_head = sym->head;
	}
	qsort(counts, n, sizeof(*counts), compare_counts);
	summarize(s, counts, n);
	free(counts);
	return 0;
}

static void rank_files(struct kx_afdo *a)
{
	for (size_t i = 0; i < a->nfiles; i++)
		a->file_rank[i] = KX_AFDO_NONE;
	for (size_t i = 0; i < a->norder; i++) {
		uint32_t file = a->symbols[a->order[i]].file;

		if (file == KX_AFDO_NONE || a->file_rank[file] != KX_AFDO_NONE)
			continue;
		a->file_rank[file] = 0;
		a->file_order[a->nfile_order++] = file;
	}
	qsort_r(a->file_order, a->nfile_order, sizeof(*a->file_order), compare_files, a);
	for (size_t i = 0; i < a->nfile_order; i++)
		a->file_rank[a->file_order[i]] = (uint32_t)i;
}

int kx_afdo_finish(struct kx_afdo *a)
{
	a->order = malloc((a->nsymbols + 1) * sizeof(*a->order));
	a->file_order = malloc((a->nfiles + 1) * sizeof(*a->file_order));
	a->file_rank = malloc((a->nfiles + 1) * sizeof(*a->file_rank));
	if (!a->order || !a->file_order || !a->file_rank)
		return -ENOMEM;
	for (size_t i = 0; i < a->nsymbols; i++) {
		if (a->symbols[i].top) {
			prune(&a->symbols[i].body);
			a->symbols[i].id = 1;
			mark_body(a, &a->symbols[i].body);
		}
	}
	for (size_t i = 0; i < a->nsymbols; i++)
		if (a->symbols[i].id)
			a->order[a->norder++] = (uint32_t)i;
	rank_files(a);
	qsort_r(a->order, a->norder, sizeof(*a->order), compare_symbols, a);
	for (size_t i = 0; i < a->norder; i++)
		a->symbols[a->order[i]].id = (uint32_t)i + 1;
	for (size_t i = 0; i < a->nsymbols; i++)
		if (a->symbols[i].top)
			sort_body(a, &a->symbols[i].body);
	return make_summary(a);
}
