// SPDX-License-Identifier: BSD-2-Clause
/*
 * The page's flame graph: the distinct stacks of each thread (calls/stacks.h) with self time and
 * calls. The nodes below the root stand for threads, by their index in the page. At most
 * KX_HTML_NODES stacks are written: where there are more, those that took least are added up in a
 * node of their caller.
 *
 * Threads come one after the other, so a tree has the stacks of one only: it mostly stays in the
 * CPU's cache, and its memory serves the next. Of an ended thread those stacks are kept that may be
 * written yet: which are too small can only become more with each further thread.
 */
#ifndef KX_HTML_FLAME_H
#define KX_HTML_FLAME_H

#include "calls/calls.h"
#include "calls/stacks.h"
#include "exporters/common/bytes.h"

#define KX_HTML_NODES 150000u
#define KX_HTML_SIZES 256 /* classes of totals, four for each power of two, to find what is small \
			   */

/* A stack of an ended thread. */
struct kx_html_kept {
	uint64_t self, calls;	      /* ticks and calls of its own */
	uint64_t all_self, all_calls; /* with callees */
	uint32_t parent;	      /* an earlier one; KX_HTML_NO_PARENT: it is a thread */
	union {
		uint32_t func;	/* of threads: index in the page */
		uint32_t place; /* once it is encoded */
	};
};

#define KX_HTML_NO_PARENT UINT32_MAX

/* All zero to begin with; free with kx_html_flame_free. */
struct kx_html_flame {
	struct kx_stacks
		stacks;	 /* of the thread that is being walked; values: ticks of self time */
	uint64_t *calls; /* by node */
	size_t room;
	uint32_t thread;
	struct kx_html_kept *kept; /* of the threads before it */
	size_t nkept, kept_room;
	size_t most_kept;	     /* more are looked through for what is too small by now */
	size_t sizes[KX_HTML_SIZES]; /* of ended threads: stacks by class of their total */
	size_t ended;		     /* stacks of ended threads, threads not counted */
	size_t most;		     /* nodes that are written, but for added ones */
	size_t dropped;		     /* after encoding: stacks that were added up */
};

/* Also after an error, call kx_html_flame_free. Errors: -ENOMEM. */
int kx_html_flame_init(struct kx_html_flame *f);
void kx_html_flame_free(struct kx_html_flame *f);

/* Begins thread @index, and ends the one before it; its node. Errors: -ENOMEM. */
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
 * Ends the last thread, and encodes the nodes as varints, callers before callees: how many nodes
 * before it its caller is written (0: it is a thread); the function by @name_of, or the thread's
 * index; ns of self time; calls. The function of a node of added up stacks is @other. Errors:
 * -ENOMEM.
 */
int kx_html_flame_encode(struct kx_html_flame *f, struct kx_bytes *out, uint64_t tsc_hz,
			 uint32_t (*name_of)(void *ctx, uint32_t func), void *ctx, uint32_t other);

#endif
