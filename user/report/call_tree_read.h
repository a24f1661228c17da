// SPDX-License-Identifier: BSD-2-Clause
/* Reads a trace's calls into a tree. */
#ifndef KX_CALL_TREE_READ_H
#define KX_CALL_TREE_READ_H

#include "base/err.h"
#include "report/call_tree.h"
#include "report/report_groups.h"

struct kx_tree_options {
	enum kx_tree_shape shape;
	const char *function;	/* [MODULE:]GLOB; NULL: all, for KX_TREE_ALL only */
	enum kx_report_by by;	/* process, thread or thread name: each has a tree; or KX_REPORT_BY_ALL */
	const json_t *session;	/* of the map; may be NULL */
	bool whole;		/* the calls are not filtered */
	uint64_t tsc_hz;
};

/*
 * Walks the calls. @out is all zero and needs kx_call_tree_free in any case. Errors: -ENODATA (the trace has no function
 * that matches), -EINVAL (a bad pattern), -EBADMSG, -ENOMEM.
 */
int kx_call_tree_read(struct kx_calls *calls, struct kx_symbolizer *names, const struct kx_tree_options *options,
		      struct kx_call_tree *out, struct kx_err *err);

#endif
