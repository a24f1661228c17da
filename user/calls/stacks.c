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

/* Room for one more node in the hash table. */
static int reserve_place(struct kx_stacks *s)
{
	return s->nhashed * 2 >= s->nplaces ? grow_places(s) : 0;
}

/* Puts the node into the hash table, unless it is there. */
static int hash_node(struct kx_stacks *s, uint32_t index)
{
	struct kx_stack *node = &s->nodes[index];

	if (node->hashed)
		return 0;
	if (reserve_place(s))
		return -ENOMEM;
	put_place(s->places, s->nplaces, hash_of(node->parent, node->func, node->is_name), index);
	node->hashed = true;
	s->nhashed++;
	return 0;
}

/* The place of the node of @func below @parent in the hash table, or a free one for it. */
static inline uint64_t *find_place(const struct kx_stacks *s, uint32_t parent, uint32_t func, bool is_name)
{
	uint64_t h = hash_of(parent, func, is_name);
	size_t at = h & (s->nplaces - 1);

	for (; s->places[at]; at = (at + 1) & (s->nplaces - 1)) {
		const struct kx_stack *node = &s->nodes[(uint32_t)s->places[at] - 1];

		if (s->places[at] >> 32 == h >> 32 && node->parent == parent && node->func == func &&
		    node->is_name == is_name)
			break;
	}
	return &s->places[at];
}

/* The node of @func below @parent by the hash table alone, made and put there if it is new. */
static int find_or_hash(struct kx_stacks *s, uint32_t parent, uint32_t func, bool is_name, uint32_t *out)
{
	uint64_t *place;
	int r = reserve_place(s);

	if (r)
		return r;
	place = find_place(s, parent, func, is_name);
	if (*place) {
		*out = (uint32_t)*place - 1;
		return 0;
	}
	*out = (uint32_t)s->nnodes;
	r = add_node(s, parent, func, is_name);
	if (r)
		return r;
	*place = hash_of(parent, func, is_name) >> 32 << 32 | (*out + 1);
	s->nodes[*out].hashed = true;
	s->nhashed++;
	return 0;
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
	return find_or_hash(s, parent, (uint32_t)i, true, out); /* names are always there */
}

/*
 * The place is another child's: this one is in the hash table. If it is new it stays there, so that nothing else must be
 * touched for it; if it is called again it takes the place.
 */
static int second_child(struct kx_stacks *s, uint32_t parent, uint32_t func, uint32_t *out)
{
	size_t before = s->nnodes;
	int r = find_or_hash(s, parent, func, false, out);

	if (r || s->nnodes > before)
		return r;
	r = hash_node(s, s->nodes[parent].children[func % 4]);
	if (!r)
		s->nodes[parent].children[func % 4] = *out;
	return r;
}

int kx_stacks_other_child(struct kx_stacks *s, uint32_t parent, uint32_t func, uint32_t *out)
{
	int r;

	if (s->nodes[parent].children[func % 4])
		return second_child(s, parent, func, out);
	*out = (uint32_t)s->nnodes;
	r = add_node(s, parent, func, false);
	if (!r)
		s->nodes[parent].children[func % 4] = *out;
	return r;
}

int kx_stacks_init(struct kx_stacks *s)
{
	return grow_places(s);
}

static void free_names(struct kx_stacks *s)
{
	for (size_t i = 0; i < s->nnames; i++)
		free(s->names[i]);
	free(s->names);
	s->names = NULL;
	s->nnames = 0;
}

/* Empties the place of the node, which is in the table, among places that may be empty already. */
static void clear_place(struct kx_stacks *s, size_t index)
{
	const struct kx_stack *node = &s->nodes[index];
	size_t at = hash_of(node->parent, node->func, node->is_name) & (s->nplaces - 1);

	while ((uint32_t)s->places[at] != (uint32_t)(index + 1))
		at = (at + 1) & (s->nplaces - 1);
	s->places[at] = 0;
}

void kx_stacks_clear(struct kx_stacks *s)
{
	/* a large table that has few nodes now is not written for them */
	bool few = s->nhashed < s->nplaces / 64;

	for (size_t i = 0; few && i < s->nnodes; i++)
		if (s->nodes[i].hashed)
			clear_place(s, i);
	if (!few)
		memset(s->places, 0, s->nplaces * sizeof(*s->places));
	s->nnodes = s->nhashed = 0;
	free_names(s);
}

void kx_stacks_free(struct kx_stacks *s)
{
	free_names(s);
	kx_huge_array_free(s->nodes, s->room, sizeof(*s->nodes));
	kx_huge_array_free(s->places, s->nplaces, sizeof(*s->places));
	memset(s, 0, sizeof(*s));
}
