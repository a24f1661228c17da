// SPDX-License-Identifier: BSD-2-Clause
/* Prints a call tree, as text or as JSON. */
#ifndef KX_TREE_VIEW_H
#define KX_TREE_VIEW_H

#include "base/screen.h"
#include "base/text_out.h"
#include "report/call_tree.h"
#include "report/tree_rows.h"
#include "trace/fdr_reader.h"
#include "trace/symbolizer.h"

#define KX_TREE_FOLD 0.01 /* text: parts of less than this share of the whole are one line */

struct kx_tree_view {
	enum kx_tree_shape shape;
	const char *function; /* for messages and JSON; NULL: all */
	size_t limit;	      /* at most this many nodes; 0: all */
	bool json;
	bool exact;	      /* text: times to the nanosecond, so that they add up */
	struct kx_screen screen;
	const json_t *session; /* may be NULL */
	const struct kx_fdr_info *info;
	struct kx_symbolizer *names;
	struct kx_text_out *out;
};

/* Prints the tree, with a head that says what was recorded. Errors: -ENOMEM, write(2)'s but EPIPE. */
int kx_tree_print(const struct kx_call_tree *tree, const struct kx_tree_view *view, struct kx_err *err);

/* Parts of that: */

/* The columns' heads. */
void kx_tree_put_columns(const struct kx_tree_view *v);

struct kx_tree_shown {
	size_t nodes, folded, left; /* printed; below the share; beyond the limit */
};

/* The rows of the nodes below @root, whose share is of @root's time. -ENOMEM, else 0. */
int kx_tree_put_rows(const struct kx_tree_view *v, const struct kx_tree_rows *rows, uint32_t root,
		     struct kx_tree_shown *shown);
/* "nodes":[...]: the same as JSON, none folded; "parent" is an index into the array. -ENOMEM, else 0. */
int kx_tree_put_json(const struct kx_tree_view *v, const struct kx_tree_rows *rows, uint32_t root);

#endif
