// SPDX-License-Identifier: BSD-2-Clause
/* Prints a diff, as a table that fits its screen (as report_view.h) or as JSON. */
#ifndef KX_DIFF_VIEW_H
#define KX_DIFF_VIEW_H

#include "base/screen.h"
#include "base/text_out.h"
#include "report/diff.h"

enum kx_diff_key {
	KX_DIFF_BY_DIFFERENCE, /* changes beyond noise first, then by the change of self time */
	/* by how much these differ */
	KX_DIFF_BY_SELF,
	KX_DIFF_BY_TOTAL,
	KX_DIFF_BY_COUNT,
	KX_DIFF_BY_MEAN,
	KX_DIFF_BY_P50,
	KX_DIFF_BY_P99,
	KX_DIFF_BY_NAME,
};

/* The key of this name (--sort); -1 if there is none. */
int kx_diff_key(const char *name);

struct kx_diff_view {
	enum kx_diff_key sort;
	size_t limit; /* print this many functions; 0: all */
	bool json;
	struct kx_screen screen;
	const char *paths[2];
	const char *host; /* whose traces they are, where diffs of several hosts follow one another; else NULL */
	bool is_next;	  /* there is one before it */
};

/* Errors: -ENOMEM, write(2)'s. EPIPE is no error: the reader closed the pipe. */
int kx_diff_print(const struct kx_diff *d, const struct kx_diff_side sides[2],
		  const struct kx_diff_view *view, struct kx_text_out *out, struct kx_err *err);

#endif
