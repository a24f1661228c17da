// SPDX-License-Identifier: BSD-2-Clause
#include "live/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

/* Bounds from 2^FIRST - 1 ns (127 ns, less than any probe takes) to 2^LAST - 1 ns (34 s). */
#define FIRST 7
#define LAST  35

void kx_put_label(struct kx_text_out *out, const char *text)
{
	size_t size = strlen(text), used;
	char shown[KX_PRINTABLE_MAX];

	kx_text_char(out, '"');
	for (; size; text += used, size -= used) {
		size_t n = kx_printable_char((const unsigned char *)text, size, shown, &used);

		/* else a name with a backslash and an n would be that of one with a line break */
		if (*text == '\\')
			kx_text_str(out, "\\\\");
		for (size_t i = 0; i < n; i++) {
			if (shown[i] == '\\' || shown[i] == '"')
				kx_text_char(out, '\\');
			kx_text_char(out, shown[i]);
		}
	}
	kx_text_char(out, '"');
}

/* What follows the name of each metric of a function, but for the closing brace. */
static int label(const struct kx_call_row *row, struct kx_text_out *to)
{
	kx_text_str(to, "{function=");
	kx_put_label(to, row->name);
	kx_text_str(to, ",module=");
	kx_put_label(to, row->module);
	kx_text_char(to, 0);
	return kx_text_flush(to);
}

static void put_real(struct kx_text_out *out, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.15g", value);
	kx_text_str(out, text);
}

/* The histogram of one function. */
static void put_durations(struct kx_text_out *out, const char *labels,
			  const struct kx_call_stats *s)
{
	uint64_t below = 0;
	unsigned i = 0;

	for (unsigned bound = FIRST; bound <= LAST; bound++) {
		char le[80];

		for (; i < bound; i++)
			below += s->buckets[i];
		snprintf(le, sizeof(le), ",le=\"%.12g\"} %" PRIu64 "\n",
			 (double)((1ull << bound) - 1) * 1e-9, below);
		kx_text_str(out, "kxray_call_duration_seconds_bucket");
		kx_text_str(out, labels);
		kx_text_str(out, le);
	}
	kx_text_str(out, "kxray_call_duration_seconds_bucket");
	kx_text_str(out, labels);
	kx_text_str(out, ",le=\"+Inf\"} ");
	kx_text_u64(out, kx_call_timed(s));
	kx_text_str(out, "\nkxray_call_duration_seconds_sum");
	kx_text_str(out, labels);
	kx_text_str(out, "} ");
	put_real(out, (double)s->sum_ns * 1e-9);
	kx_text_str(out, "\nkxray_call_duration_seconds_count");
	kx_text_str(out, labels);
	kx_text_str(out, "} ");
	kx_text_u64(out, kx_call_timed(s));
	kx_text_char(out, '\n');
}

static void add(struct kx_call_stats *sum, const struct kx_call_stats *s)
{
	sum->calls += s->calls;
	sum->sum_ns += s->sum_ns;
	for (unsigned i = 0; i < KX_CALL_BUCKETS; i++)
		sum->buckets[i] += s->buckets[i];
}

/* Calls @each for each name: all samples of a metric must be in one block. */
static int each_function(struct kx_text_out *out, const struct kx_call_row **sorted, size_t n,
			 void (*each)(struct kx_text_out *out, const char *labels,
				      const struct kx_call_stats *s))
{
	struct kx_text_out *labels = malloc(sizeof(*labels));
	int code = labels ? 0 : -ENOMEM;

	if (labels)
		kx_text_init_memory(labels);
	for (size_t i = 0, end; i < n && !code; i = end) {
		struct kx_call_stats sum = { 0 };

		for (end = i; end < n && !strcmp(sorted[end]->name, sorted[i]->name) &&
			      !strcmp(sorted[end]->module, sorted[i]->module);
		     end++)
			add(&sum, &sorted[end]->total);
		labels->stored = 0;
		code = label(sorted[i], labels);
		if (!code)
			each(out, labels->memory, &sum);
	}
	if (labels)
		free(labels->memory);
	free(labels);
	return code;
}

static void put_calls(struct kx_text_out *out, const char *labels, const struct kx_call_stats *s)
{
	kx_text_str(out, "kxray_calls_total");
	kx_text_str(out, labels);
	kx_text_str(out, "} ");
	kx_text_u64(out, s->calls);
	kx_text_char(out, '\n');
}

int kx_put_metrics(struct kx_text_out *out, const struct kx_call_rows *rows)
{
	const struct kx_call_view view = { .sort = KX_CALL_BY_NAME, .total = true };
	const struct kx_call_row **sorted;
	size_t n;
	int code;

	sorted = kx_call_rows_sorted(rows, &view, &n);
	if (!sorted)
		return -ENOMEM;
	kx_text_str(out, "# HELP kxray_calls_total Calls that have begun.\n# TYPE "
			 "kxray_calls_total counter\n");
	code = each_function(out, sorted, n, put_calls);
	kx_text_str(
		out,
		"# HELP kxray_call_duration_seconds Durations of the calls whose end was seen.\n"
		"# TYPE kxray_call_duration_seconds histogram\n");
	if (!code)
		code = each_function(out, sorted, n, put_durations);
	kx_text_str(out, "# HELP kxray_functions Functions that are traced.\n# TYPE "
			 "kxray_functions gauge\nkxray_functions ");
	kx_text_u64(out, rows->traced);
	kx_text_char(out, '\n');
	free(sorted);
	return code;
}
