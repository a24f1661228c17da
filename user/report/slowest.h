// SPDX-License-Identifier: BSD-2-Clause
/*
 * The slowest calls of a function, each as a tree of what it consists of: its own time, its callees, system calls, and, with
 * scheduler events (record --sched), when its thread was runnable or asleep in which of them, and who woke it.
 *
 * The first walk finds the calls, the second takes them apart; of calls inside others, one walk more for each level. Calls inside them are merged by stack, so memory
 * grows with distinct stacks, not with what a call does.
 */
#ifndef KX_SLOWEST_H
#define KX_SLOWEST_H

#include "report/tree_view.h"

/* Names of nodes that are no functions, in the tree of a call. */
#define KX_SLOW_RUNNABLE "(runnable)"

struct kx_slow_call {
	uint64_t number; /* of the call in the walk */
	uint64_t took;	 /* ticks */
	uint64_t enter;	 /* ticks */
	uint32_t func;
	int32_t pid, tid;
	char thread[20]; /* name */
	uint32_t root;	 /* its node in the tree: named; below it is the call */
	struct kx_value_copy values, exit_values; /* size 0: none */
};

struct kx_slowest {
	struct kx_slow_call *calls; /* the slowest first */
	size_t count, wanted;
	struct kx_call_tree tree;
	struct kx_value_map values;
};

struct kx_slowest_options {
	const char *function; /* [MODULE:]GLOB; NULL: any */
	size_t wanted;	      /* calls; at least 1 */
	bool whole;	      /* the calls are not filtered */
};

/*
 * Walks the calls. Outermost calls of a function only, with a measured end. @s is all zero; free in any case.
 * Errors: -ENODATA (no such call), -EINVAL, -EBADMSG, -ENOMEM.
 */
int kx_slowest_read(struct kx_calls *calls, const struct kx_tree_view *view, const struct kx_slowest_options *options,
		    struct kx_slowest *s, struct kx_err *err);
void kx_slowest_free(struct kx_slowest *s);
/* @view->exact is set. Errors: -ENOMEM, write(2)'s but EPIPE. */
int kx_slowest_print(const struct kx_slowest *s, const struct kx_tree_view *view, struct kx_err *err);

#endif
