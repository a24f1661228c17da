// SPDX-License-Identifier: BSD-2-Clause
/*
 * The page's flame graph: the distinct stacks of each thread (calls/stacks.h) with self time and
 * calls. The nodes below the root stand for threads, by their index in the page. At most
 * KX_HTML_NODES stacks are written: where there are more, those that took least are added up in a
 * node of their caller.
 */
#ifndef KX_HTML_FLAME_H
#define KX_HTML_FLAME_H

#include "calls/calls.h"
#include "calls/stacks.h"
#include "exporters/common/bytes.h"

#define KX_HTML_NODES 150000u

/* All zero to begin with; free with kx_html_flame_free. */
struct kx_html_flame {
	struct kx_stacks stacks; /* values: ticks of self time */
	uint64_t *calls;	 /* by node */
	size_t room;
	uint32_t root;
	size_t most;	/* nodes that are written, but for added ones */
	size_t dropped; /* after encoding: stacks that were added up */
};

int kx_html_flame_init(struct kx_html_flame *f);
void kx_html_flame_free(struct kx_html_flame *f);

/* The node of thread @index. Errors: -ENOMEM. */
int kx_html_flame_thread(struct kx_html_flame *f, uint32_t index, uint32_t *node);
/* Not inline: rarely needed. */
int kx_html_flame_other(struct kx_html_flame *f, uint32_t parent, uint32_t func, uint32_t *node);

/* The node of a call of @func below @parent. Errors: -ENOMEM. */
static inline int kx_html_flame_enter(struct kx_html_flame *f, uint32_t parent, uint32_t func,
				      uint32_t *node)
{
	*node = kx_stacks_last_child(&f->stacks, parent, func);
	return __builtin_expect(*node != 0, 1) ? 0 : kx_html_flame_other(f, parent, func, node);
}

/* A call that has this node ends; @self: ticks. */
static inline void kx_html_flame_leave(struct kx_html_flame *f, uint32_t node, uint64_t self)
{
	f->stacks.nodes[node].value += self;
	f->calls[node]++;
}

/*
 * Encodes the nodes as varints, callers before callees: how many nodes before it its caller is
 * written (0: it is a thread); the function by @name_of, or the thread's index; ns of self time;
 * calls. The function of a node of added up stacks is @other. Errors: -ENOMEM.
 */
int kx_html_flame_encode(struct kx_html_flame *f, struct kx_bytes *out, uint64_t tsc_hz,
			 uint32_t (*name_of)(void *ctx, uint32_t func), void *ctx, uint32_t other);

#endif
