// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/patch_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "tracer/patch_texts.h"

struct reading {
	const struct kx_patch_finds *finds;
	struct kx_patch_parts *parts;
};

static int add_part(struct kx_patch_parts *p, uint64_t from, uint64_t to, bool opened)
{
	if (KX_ARRAY_RESERVE(p->items, p->room, p->n))
		return -ENOMEM;
	p->items[p->n++] = (struct kx_patch_part){ from, to, opened };
	return 0;
}

static int add_mapping(void *ctx, const struct kx_mapping *m)
{
	struct reading *r = ctx;
	uint64_t from, to;
	int code = 0;

	if (!m->executable)
		return 0;
	if (!m->shared && !m->inode)
		return add_part(r->parts, m->start, m->end, false);
	for (size_t i = 0; i < r->finds->n; i++) {
		const struct kx_patch_table *t = r->finds->items[i].table;

		for (uint64_t k = 0; k < t->ntexts && !code; k++)
			if (kx_patch_text_meets(&t->texts[k], m, &from, &to))
				code = add_part(r->parts, from, to, m->writable && t->texts_writable);
	}
	return code;
}

static int by_start(const void *a, const void *b)
{
	const struct kx_patch_part *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

int kx_patch_parts_read(pid_t view, const struct kx_patch_finds *finds, struct kx_patch_parts *out)
{
	struct reading r = { .finds = finds, .parts = out };
	int code;

	*out = (struct kx_patch_parts){ 0 };
	code = kx_mappings_each(view, add_mapping, &r);
	for (size_t i = 0; i < finds->n && !code; i++)
		if (!finds->items[i].table->ntexts)
			code = add_part(out, 0, UINT64_MAX, false);
	if (!code && out->n)
		qsort(out->items, out->n, sizeof(*out->items), by_start);
	return code;
}

void kx_patch_parts_free(struct kx_patch_parts *p)
{
	free(p->items);
	*p = (struct kx_patch_parts){ 0 };
}

size_t kx_patch_parts_keep(const struct kx_patch_parts *p, struct kx_patch_change *changes, size_t n)
{
	size_t part = 0, kept = 0;

	for (size_t i = 0; i < n; i++) {
		while (part < p->n && p->items[part].to < changes[i].at + KX_PATCH_BYTES)
			part++;
		if (part < p->n && p->items[part].from <= changes[i].at)
			changes[kept++] = changes[i];
	}
	return kept;
}
