// SPDX-License-Identifier: BSD-2-Clause
#include "report/tree_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct kx_call_tree *t = ctx;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	uint64_t va = t->stacks.nodes[a].value, vb = t->stacks.nodes[b].value;

	if (va != vb)
		return va > vb ? -1 : 1;
	va = t->counts[a].calls;
	vb = t->counts[b].calls;
	return va != vb ? (va > vb ? -1 : 1) : a < b ? -1 : 1;
}

static void lay_out(struct kx_tree_rows *rows)
{
	const struct kx_stack *nodes = rows->tree->stacks.nodes;

	/* parents come before their children */
	for (size_t i = 0; i < rows->tree->stacks.nnodes; i++) {
		uint64_t at = rows->begin[i];

		for (uint32_t k = rows->first[i]; k < rows->first[i + 1]; k++) {
			rows->begin[rows->children[k]] = at;
			at += nodes[rows->children[k]].value;
		}
		rows->own[i] = at;
	}
}

int kx_tree_rows_init(struct kx_tree_rows *rows, const struct kx_call_tree *tree, uint64_t hz)
{
	size_t n = tree->stacks.nnodes;

	*rows = (struct kx_tree_rows){ .tree = tree, .hz = hz };
	rows->first = calloc(n + 3, sizeof(*rows->first));
	rows->children = calloc(n + 1, sizeof(*rows->children));
	rows->begin = calloc(n + 1, sizeof(*rows->begin));
	rows->own = calloc(n + 1, sizeof(*rows->own));
	if (!rows->first || !rows->children || !rows->begin || !rows->own)
		return -ENOMEM;
	/* first[i + 1] is where the next child of i goes, until all are there: then it is where they end */
	for (size_t i = 1; i < n; i++)
		rows->first[tree->stacks.nodes[i].parent + 2]++;
	for (size_t i = 1; i < n + 2; i++)
		rows->first[i] += rows->first[i - 1];
	for (size_t i = 1; i < n; i++)
		rows->children[rows->first[tree->stacks.nodes[i].parent + 1]++] = (uint32_t)i;
	for (size_t i = 0; i < n; i++)
		if (rows->first[i + 1] - rows->first[i] > 1)
			qsort_r(rows->children + rows->first[i], rows->first[i + 1] - rows->first[i],
				sizeof(*rows->children), compare, (void *)(uintptr_t)tree);
	lay_out(rows);
	return 0;
}

void kx_tree_rows_free(struct kx_tree_rows *rows)
{
	free(rows->first);
	free(rows->children);
	free(rows->begin);
	free(rows->own);
	memset(rows, 0, sizeof(*rows));
}

static int push(struct kx_tree_walk *w, uint32_t node)
{
	if (w->depth == w->room) {
		size_t room = w->room ? w->room * 2 : 64;
		uint32_t *places = reallocarray(w->places, room, sizeof(*places)), *nodes;

		w->places = places ? places : w->places;
		nodes = reallocarray(w->nodes, room, sizeof(*nodes));
		w->nodes = nodes ? nodes : w->nodes;
		if (!places || !nodes)
			return w->error = -ENOMEM;
		w->room = room;
	}
	w->places[w->depth] = w->rows->first[node];
	w->nodes[w->depth++] = node;
	return 0;
}

int kx_tree_walk_init(struct kx_tree_walk *w, const struct kx_tree_rows *rows, uint32_t node)
{
	*w = (struct kx_tree_walk){ .rows = rows };
	return push(w, node);
}

void kx_tree_walk_free(struct kx_tree_walk *w)
{
	free(w->places);
	free(w->nodes);
	memset(w, 0, sizeof(*w));
}

uint32_t kx_tree_walk_next(struct kx_tree_walk *w, size_t *depth)
{
	while (w->depth) {
		uint32_t parent = w->nodes[w->depth - 1], node;

		if (w->places[w->depth - 1] == w->rows->first[parent + 1]) {
			w->depth--;
			continue;
		}
		node = w->rows->children[w->places[w->depth - 1]++];
		*depth = w->depth - 1;
		return push(w, node) ? 0 : node;
	}
	return 0;
}

void kx_tree_walk_skip(struct kx_tree_walk *w)
{
	w->depth--;
}

size_t kx_tree_walk_skip_rest(struct kx_tree_walk *w, uint64_t *calls, uint64_t *ticks)
{
	size_t n = 0, level = w->depth - 2;
	uint32_t end = w->rows->first[w->nodes[level] + 1];

	*calls = *ticks = 0;
	for (uint32_t k = w->places[level] - 1; k < end; k++, n++) {
		*calls += w->rows->tree->counts[w->rows->children[k]].calls;
		*ticks += w->rows->tree->stacks.nodes[w->rows->children[k]].value;
	}
	w->places[level] = end;
	w->depth--;
	return n;
}
