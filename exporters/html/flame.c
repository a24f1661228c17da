// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/html/flame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/huge_page.h"

/* Classes of totals, four for each power of two, to find what is small. */
#define CLASSES 256

int kx_html_flame_init(struct kx_html_flame *f)
{
	int r = kx_stacks_init(&f->stacks);

	f->most = KX_HTML_NODES;
	return r ? r : kx_stacks_named(&f->stacks, KX_STACKS_ROOT, "", &f->root);
}

void kx_html_flame_free(struct kx_html_flame *f)
{
	kx_stacks_free(&f->stacks);
	kx_huge_array_free(f->calls, f->room, sizeof(*f->calls));
}

int kx_html_flame_other(struct kx_html_flame *f, uint32_t parent, uint32_t func, uint32_t *node)
{
	int r = kx_stacks_other_child(&f->stacks, parent, func, node);

	if (!r && *node >= f->room) {
		uint64_t *calls =
			kx_huge_array_grow(f->calls, &f->room, f->stacks.room, sizeof(*calls));

		if (!calls)
			return -ENOMEM;
		f->calls = calls;
	}
	return r;
}

int kx_html_flame_thread(struct kx_html_flame *f, uint32_t index, uint32_t *node)
{
	return kx_html_flame_other(f, f->root, index, node);
}

static unsigned class_of(uint64_t total)
{
	unsigned top = 63 - (unsigned)__builtin_clzll(total | 4);

	return (top - 2) * 4 + (unsigned)(total >> (top - 2) & 3);
}

/*
 * The least class of which all stacks are written. A node's sums are first with callees; then, of
 * what is written, what its callees that are not written took. They stand in the nodes, since there
 * may be millions. Callees follow their callers: backwards, all below a node is known.
 */
static unsigned add_up(const struct kx_html_flame *f)
{
	struct kx_stack *nodes = f->stacks.nodes;
	size_t kept = 0, sizes[CLASSES] = { 0 };
	unsigned least = CLASSES;

	for (size_t i = f->root + 1; i < f->stacks.nnodes; i++) {
		nodes[i].sums.ticks = nodes[i].value;
		nodes[i].sums.calls = f->calls[i];
	}
	for (size_t i = f->stacks.nnodes; i-- > f->root + 1;) {
		const struct kx_stack *s = &nodes[i];

		if (s->parent != f->root) {
			nodes[s->parent].sums.ticks += s->sums.ticks;
			nodes[s->parent].sums.calls += s->sums.calls;
		}
		sizes[class_of(s->sums.ticks)]++;
	}
	while (least && kept + sizes[least - 1] <= f->most)
		kept += sizes[--least];
	return least;
}

/* Marks what is written, and leaves of each node's sums what is neither its own nor in a callee
 * that has a place. */
static void choose(struct kx_html_flame *f, uint32_t *places, unsigned least)
{
	struct kx_stack *nodes = f->stacks.nodes;

	for (size_t i = f->root + 1; i < f->stacks.nnodes; i++) {
		struct kx_stack *s = &nodes[i];
		bool is_thread = s->parent == f->root;

		if (!is_thread && class_of(s->sums.ticks) < least) {
			f->dropped++;
			continue;
		}
		places[i] = 1;
		if (!is_thread) {
			nodes[s->parent].sums.ticks -= s->sums.ticks;
			nodes[s->parent].sums.calls -= s->sums.calls;
		}
		s->sums.ticks -= s->value;
		s->sums.calls -= f->calls[i];
	}
}

static void put_node(struct kx_bytes *out, uint32_t back, uint32_t name, uint64_t ns,
		     uint64_t calls)
{
	kx_bytes_varint(out, back);
	kx_bytes_varint(out, name);
	kx_bytes_varint(out, ns);
	kx_bytes_varint(out, calls);
}

int kx_html_flame_encode(struct kx_html_flame *f, struct kx_bytes *out, uint64_t tsc_hz,
			 uint32_t (*name_of)(void *ctx, uint32_t func), void *ctx, uint32_t other)
{
	/* in what is written, from 1 on; 0: it is not */
	uint32_t *places = calloc(f->stacks.nnodes, sizeof(*places)), place = 0;

	if (!places)
		return -ENOMEM;
	choose(f, places, add_up(f));
	for (size_t i = f->root + 1; i < f->stacks.nnodes; i++) {
		const struct kx_stack *s = &f->stacks.nodes[i];
		bool is_thread = s->parent == f->root;

		if (!places[i])
			continue;
		places[i] = ++place; /* behind the added nodes before it */
		put_node(out, is_thread ? 0 : place - places[s->parent],
			 is_thread ? s->func : name_of(ctx, s->func), kx_trace_ns(s->value, tsc_hz),
			 f->calls[i]);
		if (!s->sums.calls)
			continue;
		place++;
		put_node(out, 1, other, kx_trace_ns(s->sums.ticks, tsc_hz), s->sums.calls);
	}
	free(places);
	return 0;
}
