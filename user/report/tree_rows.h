// SPDX-License-Identifier: BSD-2-Clause
/*
 * The nodes of a call tree in the order in which they are shown, with times in nanoseconds that add up: the
 * nodes are laid out side by side on one axis of ticks, and bounds are converted, not durations. So a node's total is
 * exactly its own time and its callees' totals, whatever is rounded.
 */
#ifndef KX_TREE_ROWS_H
#define KX_TREE_ROWS_H

#include "report/call_tree.h"
#include "trace/symbolizer.h"

struct kx_tree_rows {
	const struct kx_call_tree *tree;
	uint32_t *first;   /* by node: its first child in children; children of the next node begin where they end */
	uint32_t *children; /* of each node, the largest total first */
	uint64_t *begin;   /* by node, ticks */
	uint64_t *own;	   /* by node, ticks: where its callees end and its own time begins */
	uint64_t hz;
};

/* @tree is borrowed. -ENOMEM, else 0; free with kx_tree_rows_free in any case. */
int kx_tree_rows_init(struct kx_tree_rows *rows, const struct kx_call_tree *tree, uint64_t hz);
void kx_tree_rows_free(struct kx_tree_rows *rows);

static inline uint64_t kx_tree_total_ns(const struct kx_tree_rows *rows, uint32_t node)
{
	uint64_t begin = rows->begin[node];

	return kx_trace_ns(begin + rows->tree->stacks.nodes[node].value, rows->hz) - kx_trace_ns(begin, rows->hz);
}

static inline uint64_t kx_tree_self_ns(const struct kx_tree_rows *rows, uint32_t node)
{
	uint64_t end = rows->begin[node] + rows->tree->stacks.nodes[node].value;

	return rows->own[node] < end ? kx_trace_ns(end, rows->hz) - kx_trace_ns(rows->own[node], rows->hz) : 0;
}

/* Of node 0's total; 1 if that is 0. */
static inline double kx_tree_share(const struct kx_tree_rows *rows, uint32_t node, uint32_t root)
{
	uint64_t all = rows->tree->stacks.nodes[root].value;

	return all ? (double)rows->tree->stacks.nodes[node].value / (double)all : 1;
}

/* A walk over the nodes below one, each before its children. */
struct kx_tree_walk {
	const struct kx_tree_rows *rows;
	uint32_t *places; /* by depth: index of the next child */
	uint32_t *nodes;  /* by depth: whose children */
	size_t depth, room;
	int error; /* -ENOMEM */
};

/* Begins with the children of @node. */
int kx_tree_walk_init(struct kx_tree_walk *w, const struct kx_tree_rows *rows, uint32_t node);
void kx_tree_walk_free(struct kx_tree_walk *w);
/* The next node, or 0 at the end or without memory (error); its depth, from 0 on, in *@depth. */
uint32_t kx_tree_walk_next(struct kx_tree_walk *w, size_t *depth);
/* The next node is not one below the last one. */
void kx_tree_walk_skip(struct kx_tree_walk *w);
/* Skips the rest of the last node's siblings with all below them; how many there were with it. */
size_t kx_tree_walk_skip_rest(struct kx_tree_walk *w, uint64_t *calls, uint64_t *ticks);

#endif
