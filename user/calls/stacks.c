// SPDX-License-Identifier: BSD-2-Clause
#include "calls/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/huge_page.h"

static uint64_t hash_of(uint32_t parent, uint32_t func, bool is_name)
{
	uint64_t h = ((uint64_t)parent << 32 | func) + is_name;

	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static void put_place(uint64_t *places, size_t n, uint64_t h, size_t node)
{
	size_t at = h & (n - 1);

	while (places[at])
		at = (at + 1) & (n - 1);
	places[at] = h >> 32 << 32 | (uint32_t)(node + 1);
}

static int grow_places(struct kx_stacks *s)
{
	size_t n = s->nplaces ? s->nplaces * 2 : 1024;
	size_t room = 0;
	uint64_t *places = kx_huge_array_grow(NULL, &room, n, sizeof(*places));

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < s->nnodes; i++) {
		const struct kx_stack *node = &s->nodes[i];

		if (node->hashed)
			put_place(places, n, hash_of(node->parent, node->func, node->is_name), i);
	}
	kx_huge_array_free(s->places, s->nplaces, sizeof(*places));
	s->places = places;
	s->nplaces = n;
	return 0;
}

static int add_node(struct kx_stacks *s, uint32_t parent, uint32_t func, bool is_name)
{
	if (s->nnodes == s->room) {
		struct kx_stack *nodes;

		if (s->nnodes >= KX_STACKS_ROOT)
			return -ENOMEM;
		nodes = kx_huge_array_grow(s->nodes, &s->room, s->room + s->room / 2 + 1,
					   sizeof(*nodes));
		if (!nodes)
			return -ENOMEM;
		s->nodes = nodes;
	}
	s->nodes[s->nnodes++] =
		(struct kx_stack){ .parent = parent & KX_STACKS_ROOT, .func = func, .is_name = is_name };
	return 0;
}

/* Puts the node into the hash table, unless it is there. */
static int hash_node(struct kx_stacks *s, uint32_t index)
{
	struct kx_stack *node = &s->nodes[index];

	if (node->hashed)
		return 0;
	if (s->nhashed * 2 >= s->nplaces && grow_places(s))
		return -ENOMEM;
	put_place(s->places, s->nplaces, hash_of(node->parent, node->func, node->is_name), index);
	node->hashed = true;
	s->nhashed++;
	return 0;
}

/* Whether the node of @func below @parent is in the hash table. */
static inline bool find_node(const struct kx_stacks *s, uint32_t parent, uint32_t func, bool is_name,
			     uint32_t *out)
{
	uint64_t h = hash_of(parent, func, is_name);

	for (size_t at = h & (s->nplaces - 1); s->places[at]; at = (at + 1) & (s->nplaces - 1)) {
		const struct kx_stack *node;

		if (s->places[at] >> 32 != h >> 32)
			continue;
		*out = (uint32_t)s->places[at] - 1;
		node = &s->nodes[*out];
		if (node->parent == parent && node->func == func && node->is_name == is_name)
			return true;
	}
	return false;
}

/* The node of name @i below @parent, made if it is new. Names are always in the table. */
static int find_named(struct kx_stacks *s, uint32_t parent, size_t i, uint32_t *out)
{
	int r;

	if (find_node(s, parent, (uint32_t)i, true, out))
		return 0;
	*out = (uint32_t)s->nnodes;
	r = add_node(s, parent, (uint32_t)i, true);
	return r ? r : hash_node(s, *out);
}

int kx_stacks_named(struct kx_stacks *s, uint32_t parent, const char *name, uint32_t *out)
{
	char **names;
	size_t i = 0;

	while (i < s->nnames && strcmp(s->names[i], name))
		i++;
	if (i == s->nnames) {
		names = reallocarray(s->names, i + 1, sizeof(*names));
		if (!names)
			return -ENOMEM;
		s->names = names;
		names[i] = strdup(name);
		if (!names[i])
			return -ENOMEM;
		s->nnames++;
	}
	return find_named(s, parent, i, out);
}

int kx_stacks_other_child(struct kx_stacks *s, uint32_t parent, uint32_t func, uint32_t *out)
{
	uint32_t present = s->nodes[parent].children[func % 4];
	int r = 0;

	if (present) {
		/* both places are likely to miss the cache, and so do it together */
		__builtin_prefetch(&s->places[hash_of(parent, func, false) & (s->nplaces - 1)]);
		r = hash_node(s, present);
	}
	if (r)
		return r;
	if (!present || !find_node(s, parent, func, false, out)) {
		*out = (uint32_t)s->nnodes;
		r = add_node(s, parent, func, false);
	}
	if (!r)
		s->nodes[parent].children[func % 4] = *out;
	return r;
}

int kx_stacks_init(struct kx_stacks *s)
{
	return grow_places(s);
}

void kx_stacks_free(struct kx_stacks *s)
{
	for (size_t i = 0; i < s->nnames; i++)
		free(s->names[i]);
	free(s->names);
	kx_huge_array_free(s->nodes, s->room, sizeof(*s->nodes));
	kx_huge_array_free(s->places, s->nplaces, sizeof(*s->places));
	memset(s, 0, sizeof(*s));
}
