// SPDX-License-Identifier: BSD-2-Clause
/*
 * Takes what the walk finds for the timeline and the histograms (slices.h, functions.h) to them: in
 * another thread where there is another CPU, since they take as long as the rest of the walk. What
 * goes in is added in its order, so the result is the same.
 */
#ifndef KX_HTML_FEED_H
#define KX_HTML_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "exporters/html/functions.h"
#include "exporters/html/slices.h"

struct kx_html_feed;

/* Both must live until kx_html_feed_end. NULL without memory. */
struct kx_html_feed *kx_html_feed_new(struct kx_html_slices *slices,
				      struct kx_html_functions *functions);
/* A new row; returns its number. */
uint32_t kx_html_feed_row(struct kx_html_feed *f, uint32_t thread, enum kx_html_row_kind kind,
			  uint32_t depth);
/* As kx_html_slice_add; and as kx_html_functions_add if @took (ticks) is not UINT64_MAX. */
void kx_html_feed_slice(struct kx_html_feed *f, const struct kx_html_slice *slice, uint64_t took);
/* Adds what is left, and frees @f, which may be NULL. Errors: -ENOMEM, of anything that was added.
 */
int kx_html_feed_end(struct kx_html_feed *f);

#endif
