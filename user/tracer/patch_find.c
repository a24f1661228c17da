// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/patch_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "binary/mappings.h"
#include "tracer/patch_write.h"
#include "tracer/target_rings.h"

static enum kx_patch_segment_kind kind_of(const char *path)
{
	if (!strcmp(path, "/dev/zero (deleted)")) /* mm/shmem.c, shmem_zero_setup */
		return KX_SEGMENT_SHARED;
	if (*path == '/')
		return KX_SEGMENT_FILE;
	return *path ? KX_SEGMENT_OTHER : KX_SEGMENT_PLAIN;
}

static int add_segment(void *ctx, const struct kx_mapping *m)
{
	struct kx_patch_finds *f = ctx;

	if (KX_ARRAY_RESERVE(f->segments, f->room, f->nsegments))
		return -ENOMEM;
	f->segments[f->nsegments++] = (struct kx_patch_segment){ m->start, m->end, m->writable,
								 m->executable, kind_of(m->path) };
	return 0;
}

/* The mapping of exactly these bounds. */
static const struct kx_patch_segment *segment_of(const struct kx_patch_finds *f, uint64_t from,
						 uint64_t size)
{
	for (size_t i = 0; i < f->nsegments; i++)
		if (f->segments[i].from == from)
			return f->segments[i].to - from == size ? &f->segments[i] : NULL;
	return NULL;
}

static bool read_all(int mem, uint64_t at, void *to, size_t size)
{
	return pread(mem, to, size, (off_t)at) == (ssize_t)size;
}

static bool is_head(const struct kx_patch_finds *f, int mem, uint64_t at)
{
	const struct kx_patch_segment *s = segment_of(f, at, KX_PATCH_PAGE);
	struct kx_patch_head head;

	if (!s || (s->kind != KX_SEGMENT_PLAIN && s->kind != KX_SEGMENT_SHARED) || s->executable ||
	    !read_all(mem, at, &head, sizeof(head)))
		return false;
	return head.magic == KX_PATCH_MAGIC || (!head.magic && !head.rings);
}

static bool is_shared(const struct kx_patch_finds *f, uint64_t at)
{
	const struct kx_patch_segment *s = segment_of(f, at, KX_PATCH_PAGE);

	return s && s->kind == KX_SEGMENT_SHARED;
}

static bool is_rings(const struct kx_patch_finds *f, int mem, uint64_t at, uint64_t size)
{
	const struct kx_patch_segment *s = segment_of(f, at, size);
	uint64_t magic;

	return s && s->kind == KX_SEGMENT_SHARED && s->writable && !s->executable &&
	       read_all(mem, at, &magic, sizeof(magic)) && magic == KX_PATCH_MAGIC;
}

/* At first nobody may access it. */
static bool is_code(const struct kx_patch_segment *s)
{
	return s && s->kind == KX_SEGMENT_SHARED && !s->writable;
}

static bool is_far(const struct kx_patch_finds *f, uint64_t at, uint64_t size)
{
	const struct kx_patch_segment *s = size ? segment_of(f, at, size) : NULL;

	return is_code(s);
}

/* Whether a table's numbers can be those of the area @s. */
static bool is_table(const struct kx_patch_table *t, const struct kx_patch_segment *s)
{
	const uint64_t size = s->to - s->from;

	return t->magic == KX_PATCH_MAGIC && t->code == s->from && t->code_size == size &&
	       t->ntexts <= KX_PATCH_MAX_TEXTS &&
	       t->nsites <= (size - sizeof(*t)) / sizeof(t->sites[0]);
}

/* Adds the area that is mapped at @s, if it is one. */
static int add_area(struct kx_patch_finds *f, int mem, const struct kx_patch_segment *s)
{
	struct kx_patch_table head, *table;
	struct kx_patch_found *grown;

	if (s->to - s->from < sizeof(head) || !read_all(mem, s->from, &head, sizeof(head)) ||
	    !is_table(&head, s))
		return 0;
	table = malloc(sizeof(head) + head.nsites * sizeof(head.sites[0]));
	grown = reallocarray(f->items, f->n + 1, sizeof(*grown));
	f->items = grown ? grown : f->items;
	if (!table || !grown) {
		free(table);
		return -ENOMEM;
	}
	memcpy(table, &head, sizeof(head)); /* once: the process may change its own meanwhile */
	if (!read_all(mem, s->from + sizeof(head), table->sites,
		      head.nsites * sizeof(head.sites[0]))) {
		free(table);
		return 0;
	}
	f->items[f->n++] = (struct kx_patch_found){ .table = table,
						    .has_head = is_head(f, mem, head.head),
						    .head_is_shared = is_shared(f, head.head),
						    .has_far = is_far(f, head.far, head.far_size),
						    .has_rings = is_rings(f, mem, head.rings,
									  head.rings_size) };
	return 0;
}

static bool is_named(const struct kx_patch_finds *f, uint64_t rings)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->items[i].has_rings && f->items[i].table->rings == rings)
			return true;
	return false;
}

/* Adds the rings that are mapped at @s, if they are such and nobody's. */
static int add_rings(struct kx_patch_finds *f, int mem, const struct kx_patch_segment *s)
{
	struct kx_remote_range *grown;

	if (s->to - s->from < sizeof(struct kx_target_rings) || is_named(f, s->from) ||
	    !is_rings(f, mem, s->from, s->to - s->from))
		return 0;
	grown = reallocarray(f->rings, f->nrings + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	f->rings = grown;
	f->rings[f->nrings++] = (struct kx_remote_range){ s->from, s->to };
	return 0;
}

int kx_patch_find(pid_t pid, int mem, struct kx_patch_finds *out)
{
	int code;

	*out = (struct kx_patch_finds){ 0 };
	code = kx_mappings_each(pid, add_segment, out);
	for (size_t i = 0; !code && i < out->nsegments; i++)
		if (is_code(&out->segments[i]))
			code = add_area(out, mem, &out->segments[i]);
	for (size_t i = 0; !code && i < out->nsegments; i++)
		code = add_rings(out, mem, &out->segments[i]);
	return code;
}

void kx_patch_finds_free(struct kx_patch_finds *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->items[i].table);
	free(f->items);
	free(f->rings);
	free(f->segments);
	*f = (struct kx_patch_finds){ 0 };
}
