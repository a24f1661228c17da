// SPDX-License-Identifier: BSD-2-Clause
#include "report/call_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Counts of a new node. */
static int add_counts(struct kx_call_tree *t)
{
	size_t room = t->counts_room ? t->counts_room + t->counts_room / 2 : 512;
	struct kx_tree_counts *counts;

	if (t->stacks.nnodes <= t->counts_room)
		return 0;
	while (room < t->stacks.nnodes)
		room *= 2;
	counts = reallocarray(t->counts, room, sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	memset(counts + t->counts_room, 0, (room - t->counts_room) * sizeof(*counts));
	t->counts = counts;
	t->counts_room = room;
	return 0;
}

int kx_call_tree_init(struct kx_call_tree *t)
{
	uint32_t root;
	int r = kx_stacks_init(&t->stacks);

	return r ? r : kx_call_tree_named(t, KX_STACKS_ROOT, "", &root);
}

void kx_call_tree_free(struct kx_call_tree *t)
{
	kx_stacks_free(&t->stacks);
	free(t->counts);
	memset(t, 0, sizeof(*t));
}

int kx_call_tree_child(struct kx_call_tree *t, uint32_t parent, uint32_t func, uint32_t *out)
{
	int r = kx_stacks_child(&t->stacks, parent, func, out);

	return r ? r : add_counts(t);
}

int kx_call_tree_named(struct kx_call_tree *t, uint32_t parent, const char *name, uint32_t *out)
{
	int r = kx_stacks_named(&t->stacks, parent, name, out);

	return r ? r : add_counts(t);
}

void kx_call_tree_leave(struct kx_call_tree *t, uint32_t node, const struct kx_call *call, enum kx_leave how)
{
	struct kx_tree_counts *c = &t->counts[node];

	t->stacks.nodes[node].value += how == KX_LEAVE_REPAIRED ? call->children : call->took;
	c->calls++;
	c->open += how == KX_LEAVE_OPEN;
	c->no_exit += how == KX_LEAVE_REPAIRED;
}
