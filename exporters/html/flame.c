// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/html/flame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/huge_page.h"

int kx_html_flame_init(struct kx_html_flame *f)
{
	f->most = KX_HTML_NODES;
	return kx_stacks_init(&f->stacks);
}

void kx_html_flame_free(struct kx_html_flame *f)
{
	kx_stacks_free(&f->stacks);
	kx_huge_array_free(f->calls, f->room, sizeof(*f->calls));
	kx_huge_array_free(f->kept, f->kept_room, sizeof(*f->kept));
}

/* A node has just been made. */
static int begin_node(struct kx_html_flame *f, uint32_t node)
{
	if (node >= f->room) {
		uint64_t *calls =
			kx_huge_array_grow(f->calls, &f->room, f->stacks.room, sizeof(*calls));

		if (!calls)
			return -ENOMEM;
		f->calls = calls;
	}
	f->calls[node] = 0;
	return 0;
}

int kx_html_flame_other(struct kx_html_flame *f, uint32_t parent, uint32_t func, uint32_t *node)
{
	size_t before = f->stacks.nnodes;
	int r = kx_stacks_other_child(&f->stacks, parent, func, node);

	return r || f->stacks.nnodes == before ? r : begin_node(f, *node);
}

static unsigned class_of(uint64_t total)
{
	unsigned top = 63 - (unsigned)__builtin_clzll(total | 4);

	return (top - 2) * 4 + (unsigned)(total >> (top - 2) & 3);
}

/* The least class of which all stacks are written. */
static unsigned least_class(const struct kx_html_flame *f)
{
	unsigned least = KX_HTML_SIZES;
	size_t kept = 0;

	while (least && kept + f->sizes[least - 1] <= f->most)
		kept += f->sizes[--least];
	return least;
}

/*
 * Each node's sums, with callees, and their classes. They stand in the nodes, since there may be
 * millions. Callees follow their callers: backwards, all below a node is known.
 */
static void add_up(struct kx_html_flame *f)
{
	struct kx_stack *nodes = f->stacks.nodes;

	for (size_t i = 0; i < f->stacks.nnodes; i++) {
		nodes[i].sums.ticks = nodes[i].value;
		nodes[i].sums.calls = f->calls[i];
	}
	for (size_t i = f->stacks.nnodes; --i > 0;) {
		const struct kx_stack *s = &nodes[i];

		nodes[s->parent].sums.ticks += s->sums.ticks;
		nodes[s->parent].sums.calls += s->sums.calls;
		f->sizes[class_of(s->sums.ticks)]++;
	}
	f->sizes[class_of(nodes[0].sums.ticks)]++;
	f->ended += f->stacks.nnodes - 1;
}

static int kept_room(struct kx_html_flame *f)
{
	struct kx_html_kept *kept = kx_huge_array_grow(
		f->kept, &f->kept_room, f->kept_room + f->kept_room / 2 + 1, sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	f->kept = kept;
	return 0;
}

/* Keeps what is large enough so far. A callee is never larger than its caller. */
static int keep_nodes(struct kx_html_flame *f)
{
	struct kx_stack *nodes = f->stacks.nodes;
	unsigned least = least_class(f);

	for (size_t i = 0; i < f->stacks.nnodes; i++) {
		struct kx_stack *s = &nodes[i];

		if (i && class_of(s->sums.ticks) < least)
			continue;
		if (f->nkept == f->kept_room && kept_room(f))
			return -ENOMEM;
		f->kept[f->nkept] = (struct kx_html_kept){
			.self = s->value,
			.calls = f->calls[i],
			.all_self = s->sums.ticks,
			.all_calls = s->sums.calls,
			.parent = i ? (uint32_t)nodes[s->parent].value : KX_HTML_NO_PARENT,
			.func = i ? s->func : f->thread,
		};
		s->value = f->nkept++; /* for its callees */
	}
	return 0;
}

/* Of the kept ones drops what has become too small. */
static int drop_small(struct kx_html_flame *f)
{
	uint32_t *places = malloc((f->nkept + 1) * sizeof(*places)); /* of those that stay */
	unsigned least = least_class(f);
	size_t n = 0;

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < f->nkept; i++) {
		struct kx_html_kept k = f->kept[i];

		if (k.parent != KX_HTML_NO_PARENT) {
			if (class_of(k.all_self) < least)
				continue;
			k.parent = places[k.parent];
		}
		places[i] = (uint32_t)n;
		f->kept[n++] = k;
	}
	f->nkept = n;
	f->most_kept = n + (n > f->most ? n : f->most);
	free(places);
	return 0;
}

static int end_thread(struct kx_html_flame *f)
{
	int r;

	if (!f->stacks.nnodes)
		return 0;
	add_up(f);
	r = keep_nodes(f);
	kx_stacks_clear(&f->stacks);
	return r || f->nkept <= f->most_kept ? r : drop_small(f);
}

int kx_html_flame_thread(struct kx_html_flame *f, uint32_t index, uint32_t *node)
{
	int r = end_thread(f);

	if (r)
		return r;
	f->thread = index;
	r = kx_stacks_named(&f->stacks, KX_STACKS_ROOT, "", node);
	return r ? r : begin_node(f, *node);
}

/* Leaves of the sums with callees what is neither a stack's own nor a kept callee's. Callers come
 * first: of theirs, nothing of the callee has been taken when it takes its own. */
static void subtract_callees(struct kx_html_flame *f)
{
	for (size_t i = 0; i < f->nkept; i++) {
		struct kx_html_kept *k = &f->kept[i];

		if (k->parent != KX_HTML_NO_PARENT) {
			f->kept[k->parent].all_self -= k->all_self;
			f->kept[k->parent].all_calls -= k->all_calls;
		}
		k->all_self -= k->self;
		k->all_calls -= k->calls;
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
	uint32_t place = 0; /* in what is written, from 1 on */
	size_t threads = 0;
	int r = end_thread(f);

	r = r ? r : drop_small(f);
	if (r)
		return r;
	subtract_callees(f);
	for (size_t i = 0; i < f->nkept; i++) {
		struct kx_html_kept *k = &f->kept[i];
		bool is_thread = k->parent == KX_HTML_NO_PARENT;

		place++; /* behind the added nodes before it */
		put_node(out, is_thread ? 0 : place - f->kept[k->parent].place,
			 is_thread ? k->func : name_of(ctx, k->func), kx_trace_ns(k->self, tsc_hz),
			 k->calls);
		k->place = place;
		threads += is_thread;
		if (!k->all_calls)
			continue;
		place++;
		put_node(out, 1, other, kx_trace_ns(k->all_self, tsc_hz), k->all_calls);
	}
	f->dropped = f->ended - (f->nkept - threads);
	return 0;
}
