// SPDX-License-Identifier: BSD-2-Clause
#include "binary/symbols.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/demangle.h"
#include "base/parallel.h"
#include "base/usable_cpus.h"
#include "binary/symbol_sort.h"
#include "binary/symbol_sources.h"

/* A .cold part: the function's code that the compiler moved away as unlikely. */
struct cold {
	const char *name;
	uint32_t file; /* as in struct kx_raw_symbol */
	uint64_t addr, size;
	size_t parent; /* index into items; SIZE_MAX if unknown */
};

/* Any name of a symbol, to find the parents of .cold parts. */
struct name_ref {
	const char *name;
	uint32_t file;
	size_t index; /* into items */
};

struct storage {
	struct kx_arena *arena;
	const char **aliases; /* all lists, each NULL-terminated */
	struct cold *colds;   /* sorted by addr */
	size_t ncolds;
	char source[sizeof(((struct kx_raw_symbols *)0)->source)];
};

/* Length of the parent's name if @name is a .cold part ("f.cold", "f.isra.0.cold.3"), else 0. */
static size_t cold_parent_length(const char *name)
{
	const size_t length = strlen(name);
	const char last = length ? name[length - 1] : 0;
	const char *at, *end;

	/* most names end otherwise */
	if (last != 'd' && last != '.' && !isdigit((unsigned char)last))
		return 0;
	at = strstr(name, ".cold");
	if (!at || at == name)
		return 0;
	end = at + strlen(".cold");
	if (*end == '.')
		end++;
	while (isdigit((unsigned char)*end))
		end++;
	return *end ? 0 : (size_t)(at - name);
}

static int compare_cold(const void *pa, const void *pb)
{
	const struct cold *a = pa, *b = pb;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static int compare_u64(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

static int compare_name_ref(const void *pa, const void *pb)
{
	const struct name_ref *a = pa, *b = pb;
	int d = strcmp(a->name, b->name);

	if (d)
		return d;
	return a->file != b->file ? (a->file < b->file ? -1 : 1) :
	       a->index != b->index ? (a->index < b->index ? -1 : 1) : 0;
}

/* First element above @addr in a sorted array; UINT64_MAX if there is none. */
static uint64_t next_above(const uint64_t *sorted, size_t n, uint64_t addr)
{
	const size_t next = KX_COUNT_LEADING(n, i, sorted[i] <= addr);

	return next < n ? sorted[next] : UINT64_MAX;
}

/* Where sections begin and end, and segments end. Sorted; the caller frees it. */
static uint64_t *section_bounds(struct kx_elf *elf, size_t *n)
{
	struct kx_elf_section s;
	const char *name;
	uint64_t *bounds;
	size_t nsections = 0, nsegments = 0, i;

	while (kx_elf_section_at(elf, nsections, &name, &s))
		nsections++;
	while (kx_elf_exec_segment(elf, nsegments, &s))
		nsegments++;
	bounds = calloc(2 * nsections + nsegments + 1, sizeof(*bounds));
	if (!bounds)
		return NULL;
	*n = 0;
	for (i = 0; kx_elf_section_at(elf, i, &name, &s); i++)
		if (s.addr) {
			bounds[(*n)++] = s.addr;
			bounds[(*n)++] = s.addr + s.size;
		}
	for (i = 0; kx_elf_exec_segment(elf, i, &s); i++)
		bounds[(*n)++] = s.addr + s.size;
	qsort(bounds, *n, sizeof(*bounds), compare_u64);
	return bounds;
}

/*
 * Addresses where code that has no size of its own must end at the latest: the next symbol of @raw and @st, which are
 * sorted, the section's and the segment's end. Sorted; the caller frees it.
 */
static uint64_t *code_bounds(struct kx_elf *elf, const struct kx_raw_symbols *raw, const struct storage *st, size_t *n)
{
	size_t nsections, i = 0, k = 0, c = 0;
	uint64_t *sections = section_bounds(elf, &nsections), *bounds = NULL;

	if (sections)
		bounds = calloc(raw->count + st->ncolds + nsections + 1, sizeof(*bounds));
	*n = 0;
	while (bounds && (i < raw->count || c < st->ncolds || k < nsections)) {
		const uint64_t symbol = i < raw->count ? raw->items[i].addr : UINT64_MAX;
		const uint64_t cold = c < st->ncolds ? st->colds[c].addr : UINT64_MAX;
		const uint64_t section = k < nsections ? sections[k] : UINT64_MAX;

		if (i < raw->count && symbol <= cold && symbol <= section) {
			bounds[(*n)++] = symbol;
			i++;
		} else if (c < st->ncolds && cold <= section) {
			bounds[(*n)++] = cold;
			c++;
		} else {
			bounds[(*n)++] = section;
			k++;
		}
	}
	free(sections);
	return bounds;
}

/* A size that is known and inside the file. */
static uint64_t fit_size(struct kx_elf *elf, const uint64_t *bounds, size_t n, uint64_t addr,
			 uint64_t size)
{
	uint64_t end = next_above(bounds, n, addr);

	/* A segment's end is among the bounds, so @end is never missing. */
	if (size && kx_elf_code(elf, addr, size))
		return size;
	return end - addr;
}

/* Moves the .cold parts from @raw to @st. */
static int split_colds(struct kx_raw_symbols *raw, struct storage *st)
{
	size_t i, n = 0, ncolds = 0;

	for (i = 0; i < raw->count; i++)
		ncolds += cold_parent_length(raw->items[i].name) != 0;
	st->colds = calloc(ncolds + 1, sizeof(*st->colds));
	if (!st->colds)
		return -ENOMEM;
	for (i = 0; i < raw->count && ncolds; i++) {
		const struct kx_raw_symbol *r = &raw->items[i];

		if (cold_parent_length(r->name))
			st->colds[st->ncolds++] = (struct cold){ r->name, r->file, r->addr, r->size,
								 SIZE_MAX };
		else
			raw->items[n++] = *r;
	}
	raw->count = ncolds ? n : raw->count;
	qsort(st->colds, st->ncolds, sizeof(*st->colds), compare_cold);
	return 0;
}

/* The one function among refs[0..n) that comes from @file; SIZE_MAX if none or several do. */
static size_t only_of_file(const struct name_ref *refs, size_t n, uint32_t file)
{
	size_t i, only = SIZE_MAX;

	for (i = 0; i < n; i++) {
		if (refs[i].file != file || refs[i].index == only)
			continue;
		if (only != SIZE_MAX)
			return SIZE_MAX;
		only = refs[i].index;
	}
	return only;
}

/*
 * The function that a .cold part belongs to. Static functions of several source files may
 * share a name: the one of the same file counts, else the global one.
 */
static size_t find_parent(const struct name_ref *refs, size_t n, const struct cold *cold)
{
	const size_t len = cold_parent_length(cold->name);
	const size_t first = KX_COUNT_LEADING(n, i, strncmp(refs[i].name, cold->name, len) < 0);
	size_t end = first, parent;

	while (end < n && !strncmp(refs[end].name, cold->name, len) && !refs[end].name[len])
		end++;
	parent = only_of_file(refs + first, end - first, cold->file);
	return parent != SIZE_MAX ? parent : only_of_file(refs + first, end - first, 0);
}

static void attach_colds(struct kx_symbols *out, const struct name_ref *refs, size_t nrefs)
{
	struct storage *st = out->storage;
	size_t i;

	for (i = 0; i < st->ncolds; i++) {
		struct cold *c = &st->colds[i];
		struct kx_symbol *parent;

		c->parent = find_parent(refs, nrefs, c);
		if (c->parent == SIZE_MAX)
			continue;
		parent = &out->items[c->parent];
		/* LLVM may split off several: keep the largest. */
		if (c->size > parent->cold_size) {
			parent->cold_addr = c->addr;
			parent->cold_size = c->size;
		}
	}
}

#define DEMANGLE_STRIDE 512 /* names that a thread takes at once */
#define MAX_THREADS 8

struct demangling {
	struct kx_symbols *syms;
	size_t next; /* atomic */
	pthread_mutex_t lock;
	struct kx_arena *arena; /* of the threads that are done */
	int rc;
};

static int set_pretty(struct kx_arena **arena, struct kx_symbol *sym)
{
	char *pretty = kx_demangle(sym->name);

	sym->pretty = sym->name;
	if (!pretty)
		return 0;
	sym->pretty = kx_arena_copy(arena, pretty, strlen(pretty));
	free(pretty);
	return sym->pretty ? 0 : -ENOMEM;
}

static void *demangle(void *arg)
{
	struct demangling *d = arg;
	const size_t n = d->syms->count;
	struct kx_arena *arena = NULL;
	int rc = 0;
	size_t i;

	while (!rc && (i = __atomic_fetch_add(&d->next, DEMANGLE_STRIDE, __ATOMIC_RELAXED)) < n)
		for (size_t k = i; k < n && k - i < DEMANGLE_STRIDE && !rc; k++)
			rc = set_pretty(&arena, &d->syms->items[k]);
	pthread_mutex_lock(&d->lock);
	kx_arena_join(&d->arena, arena);
	if (rc)
		d->rc = rc;
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

static int demangle_all(struct kx_symbols *syms)
{
	struct storage *st = syms->storage;
	struct demangling d = { .syms = syms, .lock = PTHREAD_MUTEX_INITIALIZER };

	kx_parallel_run(kx_usable_cpus(syms->count < 4 * DEMANGLE_STRIDE ? 1 : MAX_THREADS), demangle, &d);
	kx_arena_join(&st->arena, d.arena);
	return d.rc;
}

/* Joins the sorted @raw symbols of each address into one function with aliases, without readable names. */
static void join(struct kx_elf *elf, const struct kx_raw_symbols *raw, const uint64_t *bounds,
		size_t nbounds, struct name_ref *refs, size_t *nrefs, struct kx_symbols *out)
{
	struct storage *st = out->storage;
	size_t i, k, naliases = 0;

	for (i = 0; i < raw->count; i = k) {
		const struct kx_raw_symbol *first = &raw->items[i];
		struct kx_symbol *sym = &out->items[out->count];
		const char **list = st->aliases + naliases;
		size_t n = 0;

		sym->name = first->name;
		sym->addr = first->addr;
		for (k = i; k < raw->count && raw->items[k].addr == first->addr; k++) {
			const struct kx_raw_symbol *r = &raw->items[k];

			if (r->size > sym->size)
				sym->size = r->size;
			sym->is_ifunc |= r->type == STT_GNU_IFUNC;
			refs[(*nrefs)++] = (struct name_ref){ r->name, r->file, out->count };
			if (k > i)
				list[n++] = r->name;
		}
		if (n) {
			sym->aliases = list;
			naliases += n + 1;
		}
		sym->size = fit_size(elf, bounds, nbounds, sym->addr, sym->size);
		out->count++;
	}
}

int kx_symbols_read(struct kx_elf *elf, const char *root, struct kx_symbols *out,
		    struct kx_err *err)
{
	struct name_ref *refs = NULL;
	struct kx_raw_symbols raw;
	uint64_t *bounds = NULL;
	size_t nbounds = 0, nrefs = 0, i;
	struct storage *st;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = kx_raw_symbols_read(elf, root, &raw, err);
	if (rc)
		return rc;
	rc = -ENOMEM;
	st = calloc(1, sizeof(*st));
	if (!st) {
		kx_arena_free(raw.arena);
		goto out;
	}
	out->storage = st;
	st->arena = raw.arena;
	memcpy(st->source, raw.source, sizeof(st->source));
	out->source = st->source;
	if (split_colds(&raw, st))
		goto out;
	kx_raw_symbols_sort(&raw);
	bounds = code_bounds(elf, &raw, st, &nbounds);
	if (!bounds)
		goto out;
	for (i = 0; i < st->ncolds; i++)
		st->colds[i].size = fit_size(elf, bounds, nbounds, st->colds[i].addr,
					     st->colds[i].size);
	out->items = calloc(raw.count + 1, sizeof(*out->items));
	st->aliases = calloc(2 * raw.count + 1, sizeof(*st->aliases));
	refs = calloc(raw.count + 1, sizeof(*refs));
	if (!out->items || !st->aliases || !refs)
		goto out;
	join(elf, &raw, bounds, nbounds, refs, &nrefs, out);
	if (demangle_all(out))
		goto out;
	if (st->ncolds) {
		qsort(refs, nrefs, sizeof(*refs), compare_name_ref);
		attach_colds(out, refs, nrefs);
	}
	rc = 0;
out:
	free(bounds);
	free(refs);
	free(raw.items);
	if (rc) {
		kx_symbols_free(out);
		return kx_err_set(err, rc, "no memory for the symbols of '%s'", kx_elf_path(elf));
	}
	return 0;
}

void kx_symbols_free(struct kx_symbols *syms)
{
	struct storage *st = syms->storage;

	if (syms->release) {
		syms->release(st);
	} else if (st) {
		kx_arena_free(st->arena);
		free(st->aliases);
		free(st->colds);
		free(st);
	}
	free(syms->items);
	memset(syms, 0, sizeof(*syms));
}

const struct kx_symbol *kx_symbols_find(const struct kx_symbols *syms, uint64_t addr)
{
	const struct storage *st = syms->release ? NULL : syms->storage;
	const size_t end = KX_COUNT_LEADING(syms->count, i, syms->items[i].addr <= addr);
	size_t end_of_colds;

	if (end && addr - syms->items[end - 1].addr < syms->items[end - 1].size)
		return &syms->items[end - 1];
	if (!st)
		return NULL;
	end_of_colds = KX_COUNT_LEADING(st->ncolds, i, st->colds[i].addr <= addr);
	if (end_of_colds) {
		const struct cold *c = &st->colds[end_of_colds - 1];

		if (addr - c->addr < c->size && c->parent != SIZE_MAX)
			return &syms->items[c->parent];
	}
	return NULL;
}

static bool is_called(const struct kx_symbol *sym, const char *name)
{
	if (!strcmp(sym->name, name))
		return true;
	for (const char **alias = sym->aliases; alias && *alias; alias++)
		if (!strcmp(*alias, name))
			return true;
	return false;
}

const struct kx_symbol *kx_symbols_find_name(const struct kx_symbols *syms, const char *name)
{
	for (size_t i = 0; i < syms->count; i++)
		if (is_called(&syms->items[i], name))
			return &syms->items[i];
	return NULL;
}
