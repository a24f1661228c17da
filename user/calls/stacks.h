// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stacks as a tree: a node for each distinct stack of functions, with a value that its user adds up. It is the
 * engine of folded stacks (exporters/folded.c) and of the trees of calls (report/call_tree.h).
 *
 * Memory grows with distinct stacks. A node is in its parent's children[], by the low bits of its function, or in the
 * hash table where another child has that place: so most new nodes are neither looked for nor put there, because the place is
 * free.
 */
#ifndef KX_STACKS_H
#define KX_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KX_STACKS_ROOT ((1u << 30) - 1) /* parent of the outermost nodes, which are named */

/* Half a cache line. */
struct kx_stack {
	uint64_t value;
	uint32_t parent : 30; /* an earlier node */
	uint32_t hashed : 1;  /* it is in the hash table */
	uint32_t is_name : 1; /* func is an index into names: of a process, a thread, ... */
	uint32_t func;
	union {
		uint32_t children[4]; /* one of those with the same low bits of func; 0: there is none */
		struct {
			uint64_t ticks, calls;
		} sums; /* for users who look for no more children */
	};
};

/* All zero but for places: empty. */
struct kx_stacks {
	struct kx_stack *nodes;
	size_t nnodes, room;
	uint64_t *places; /* part of the hash and node index + 1; 0: free */
	size_t nplaces;	  /* a power of two */
	size_t nhashed;
	char **names;
	size_t nnames;
};

/* @s is all zero. -ENOMEM, else 0; free with kx_stacks_free. */
int kx_stacks_init(struct kx_stacks *s);
void kx_stacks_free(struct kx_stacks *s);
/* Forgets all nodes and names; keeps the memory for others. */
void kx_stacks_clear(struct kx_stacks *s);

/* The node with this name below @parent, which may be KX_STACKS_ROOT; made if it is new. -ENOMEM, else 0. */
int kx_stacks_named(struct kx_stacks *s, uint32_t parent, const char *name, uint32_t *out);

/* The node of @func below @parent if it has its place there, as most have: most functions call few others. Else 0. */
static inline uint32_t kx_stacks_last_child(const struct kx_stacks *s, uint32_t parent, uint32_t func)
{
	uint32_t node = s->nodes[parent].children[func % 4];

	return __builtin_expect(node && s->nodes[node].func == func, 1) ? node : 0;
}

/* kx_stacks_child for what kx_stacks_last_child does not find. */
int kx_stacks_other_child(struct kx_stacks *s, uint32_t parent, uint32_t func, uint32_t *out);

/* The node of function @func below @parent, made if it is new. -ENOMEM, else 0. */
static inline int kx_stacks_child(struct kx_stacks *s, uint32_t parent, uint32_t func, uint32_t *out)
{
	*out = kx_stacks_last_child(s, parent, func);
	return *out ? 0 : kx_stacks_other_child(s, parent, func, out);
}

#endif
