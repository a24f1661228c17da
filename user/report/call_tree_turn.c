// SPDX-License-Identifier: BSD-2-Clause
#include "report/call_tree_turn.h"

#include <errno.h>
#include <stdlib.h>

struct turn {
	const struct kx_call_tree *from;
	struct kx_call_tree to;
	struct kx_ready_filter *functions;
};

static bool is_wanted(const struct turn *t, uint32_t node)
{
	const struct kx_stack *n = &t->from->stacks.nodes[node];

	return !n->is_name && kx_filter_wants(t->functions, n->func);
}

/* Whether no call of the same function is open around the node's; *@group is what the stack belongs to. */
static bool is_outermost(const struct turn *t, uint32_t node, uint32_t *group)
{
	const struct kx_stack *nodes = t->from->stacks.nodes;
	bool outermost = true;

	for (*group = nodes[node].parent; !nodes[*group].is_name; *group = nodes[*group].parent)
		outermost &= nodes[*group].func != nodes[node].func;
	return outermost;
}

static int group_node(struct turn *t, uint32_t group, uint32_t *out)
{
	const struct kx_stacks *s = &t->from->stacks;

	*out = 0;
	return group ? kx_call_tree_named(&t->to, 0, s->names[s->nodes[group].func], out) : 0;
}

static void add(struct turn *t, uint32_t to, uint32_t from, bool time)
{
	struct kx_tree_counts *c = &t->to.counts[to];
	const struct kx_tree_counts *d = &t->from->counts[from];

	c->calls += d->calls;
	c->open += d->open;
	c->no_exit += d->no_exit;
	if (time)
		t->to.stacks.nodes[to].value += t->from->stacks.nodes[from].value;
}

/* The function, its caller, and so on outwards. */
static int add_callers(struct turn *t, uint32_t node)
{
	const struct kx_stack *nodes = t->from->stacks.nodes;
	uint32_t group, to;
	bool outermost = is_outermost(t, node, &group);
	int r = group_node(t, group, &to);

	for (uint32_t at = node; !r && !nodes[at].is_name; at = nodes[at].parent) {
		r = kx_call_tree_child(&t->to, to, nodes[at].func, &to);
		if (!r)
			add(t, to, node, outermost);
	}
	return r;
}

/*
 * @counted: by node, whether its time is that of the function: it is the outermost call, or called by that through
 * nothing but itself. What other inner calls of the function take is in the time of a callee.
 */
static int add_callees(struct turn *t, uint32_t node, bool *counted)
{
	const struct kx_stack *nodes = t->from->stacks.nodes;
	uint32_t parent = nodes[node].parent, group, to;
	bool wanted = is_wanted(t, node), of_wanted = is_wanted(t, parent);
	bool outermost = is_outermost(t, node, &group), itself = !nodes[parent].is_name &&
								  nodes[parent].func == nodes[node].func;
	int r = 0;

	if (wanted) {
		counted[node] = outermost || (itself && counted[parent]);
		r = group_node(t, group, &to);
		r = r ? r : kx_call_tree_child(&t->to, to, nodes[node].func, &to);
		if (!r)
			add(t, to, node, outermost);
	}
	if (r || !of_wanted)
		return r;
	r = group_node(t, group, &to);
	r = r ? r : kx_call_tree_child(&t->to, to, nodes[parent].func, &to);
	r = r ? r : kx_call_tree_child(&t->to, to, nodes[node].func, &to);
	if (!r)
		add(t, to, node, counted[parent] && !itself);
	return r;
}

int kx_call_tree_turn(struct kx_call_tree *tree, struct kx_ready_filter *functions, enum kx_tree_shape shape)
{
	struct turn t = { .from = tree, .to.totals = tree->totals, .functions = functions };
	bool *counted = calloc(tree->stacks.nnodes + 1, sizeof(*counted));
	int r = counted ? kx_call_tree_init(&t.to) : -ENOMEM;

	for (uint32_t i = 1; !r && i < tree->stacks.nnodes; i++) {
		if (tree->stacks.nodes[i].is_name)
			continue;
		if (shape == KX_TREE_CALLEES)
			r = add_callees(&t, i, counted);
		else if (is_wanted(&t, i))
			r = add_callers(&t, i);
	}
	free(counted);
	if (r) {
		kx_call_tree_free(&t.to);
		return r;
	}
	kx_call_tree_free(tree);
	*tree = t.to;
	return 0;
}
