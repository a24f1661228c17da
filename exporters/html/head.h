// SPDX-License-Identifier: BSD-2-Clause
/* What the page says about the recording as a whole, and the names of its threads, modules and
 * events: JSON. */
#ifndef KX_HTML_HEAD_H
#define KX_HTML_HEAD_H

#include "exporters/common/bytes.h"
#include "exporters/exporter.h"
#include "report/report.h"

#define KX_HTML_TEXTS	   4096 /* different texts of events; any other is KX_HTML_OTHER_TEXT */
#define KX_HTML_OTHER_TEXT "event"

struct kx_html_head {
	const struct kx_export *x;
	const struct kx_report_totals *totals;
	struct kx_text_out *threads; /* in memory: JSON objects, separated by commas */
	const char *const *texts;
	size_t ntexts;
	uint64_t slices, merged, limit; /* limit: ticks, see slices.h */
	size_t stacks_dropped;
};

/* Adds a thread of the page to head->threads. */
void kx_html_head_thread(struct kx_text_out *threads, const struct kx_call_thread *t, bool first);

/* Errors: -ENOMEM. */
int kx_html_head_encode(const struct kx_html_head *head, struct kx_bytes *out);

#endif
