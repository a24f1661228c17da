// SPDX-License-Identifier: BSD-2-Clause
#include "live/call_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json_text.h"

static void put_real(struct kx_text_out *out, const char *key, double value, int decimals)
{
	char text[64];

	snprintf(text, sizeof(text), ",\"%s\":%.*f", key, decimals, value);
	kx_text_str(out, text);
}

static void put_row(struct kx_text_out *out, const struct kx_call_row *row, double seconds)
{
	const struct kx_call_stats *s = &row->last, *t = &row->total;
	const char *comma = "";

	kx_text_str(out, "{\"name\":");
	kx_text_json_string(out, row->name);
	kx_text_str(out, ",\"module\":");
	kx_text_json_string(out, row->module);
	kx_text_json_u64(out, "calls", s->calls);
	put_real(out, "per_second", seconds > 0 ? (double)s->calls / seconds : 0, 3);
	kx_text_json_u64(out, "timed", kx_call_timed(s));
	kx_text_json_u64(out, "sum_ns", s->sum_ns);
	put_real(out, "share_percent", kx_call_share(s, seconds) * 100, 3);
	kx_text_json_u64(out, "p50_ns", kx_call_quantile(s, 500));
	kx_text_json_u64(out, "p99_ns", kx_call_quantile(s, 990));
	kx_text_json_u64(out, "max_ns", s->max_ns);
	kx_text_str(out, ",\"buckets\":[");
	for (unsigned i = 0; i < KX_CALL_BUCKETS; i++) {
		if (!s->buckets[i])
			continue;
		kx_text_str(out, comma);
		kx_text_str(out, "{\"from_ns\":");
		kx_text_u64(out, i ? 1ull << i : 0);
		kx_text_json_u64(out, "count", s->buckets[i]);
		kx_text_char(out, '}');
		comma = ",";
	}
	kx_text_char(out, ']');
	kx_text_json_u64(out, "total_calls", t->calls);
	kx_text_json_u64(out, "total_timed", kx_call_timed(t));
	kx_text_json_u64(out, "total_sum_ns", t->sum_ns);
	kx_text_json_u64(out, "total_max_ns", t->max_ns);
	kx_text_char(out, '}');
}

int kx_put_call_json(struct kx_text_out *out, const struct kx_call_json *j,
		     const struct kx_call_rows *rows, const struct kx_call_view *v, size_t limit)
{
	struct kx_call_view view = *v;
	const struct kx_call_row **sorted;
	uint64_t calls = 0, total = 0;
	size_t n;

	view.total = j->last;
	sorted = kx_call_rows_sorted(rows, &view, &n);
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < rows->n; i++) {
		calls += rows->items[i].last.calls;
		total += rows->items[i].total.calls;
	}
	kx_text_str(out, "{" KX_JSON_SCHEMA_TEXT);
	kx_text_json_u64(out, "interval", j->interval);
	put_real(out, "time", j->time, 6);
	put_real(out, "seconds", rows->seconds, 6);
	put_real(out, "total_seconds", rows->total_seconds, 6);
	put_real(out, "cpu_percent", rows->seconds > 0 ? rows->cpu / rows->seconds * 100 : 0, 1);
	kx_text_json_u64(out, "calls", calls);
	kx_text_json_u64(out, "total_calls", total);
	kx_text_json_u64(out, "functions_traced", rows->traced);
	kx_text_json_u64(out, "functions_called", n);
	if (j->last)
		kx_text_json_u64(out, "missed", j->missed);
	kx_text_str(out,
		    j->last ? ",\"last\":true,\"functions\":[" : ",\"last\":false,\"functions\":[");
	for (size_t i = 0; i < n && (!limit || i < limit); i++) {
		kx_text_str(out, i ? "," : "");
		put_row(out, sorted[i], rows->seconds);
	}
	kx_text_str(out, "]}\n");
	free(sorted);
	return 0;
}
