// SPDX-License-Identifier: BSD-2-Clause
#include "report/diff_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/json_text.h"
#include "report/report_head.h"

static void put(const struct kx_diff_printer *p, const char *key, double value, const char *format)
{
	char text[64];

	kx_text_str(p->out, ",\"");
	kx_text_str(p->out, key);
	kx_text_str(p->out, "\":");
	if (isfinite(value))
		snprintf(text, sizeof(text), format, value);
	else
		snprintf(text, sizeof(text), "null");
	kx_text_str(p->out, text);
}

static void put_change(const struct kx_diff_printer *p, const char *key,
		       const struct kx_diff_change *c, bool times)
{
	kx_text_str(p->out, ",\"");
	kx_text_str(p->out, key);
	if (!c->judged) {
		kx_text_str(p->out, "\":null");
		return;
	}
	kx_text_str(p->out, "\":{\"beyond_noise\":");
	kx_text_str(p->out, c->beyond ? "true" : "false");
	put(p, "change", c->change, "%.6f");
	put(p, "noise", c->noise, "%.6f");
	put(p, "recorded_change", c->recorded, "%.6f");
	if (times)
		kx_text_str(p->out, c->by_median ? ",\"of\":\"median\"" : ",\"of\":\"mean\"");
	kx_text_char(p->out, '}');
}

static void put_numbers(const struct kx_diff_printer *p, const struct kx_diff_row *row, int side)
{
	const struct kx_diff_numbers *n = &row->in[side];
	const struct kx_budget_entry *e =
		p->sides[side].budget ? kx_budget_info_find(p->sides[side].budget, row->id[side])
				      : NULL;

	kx_text_str(p->out, side ? ",\"b\":" : ",\"a\":");
	if ((side ? row->index.b : row->index.a) == KX_DIFF_NONE) {
		kx_text_str(p->out, "null");
		return;
	}
	kx_text_str(p->out, "{\"id\":");
	kx_text_u64(p->out, row->id[side]);
	put(p, "count", n->count, "%.0f");
	if (e) {
		kx_text_json_u64(p->out, "all_calls", e->calls);
		kx_text_json_u64(p->out, "recorded_calls", e->recorded);
	}
	put(p, "total_ns", n->total, "%.0f");
	put(p, "self_ns", n->self, "%.0f");
	put(p, "mean_ns", n->calls ? n->mean : NAN, "%.1f");
	put(p, "p50_ns", n->calls ? n->p50 : NAN, "%.0f");
	put(p, "p99_ns", n->calls ? n->p99 : NAN, "%.0f");
	kx_text_char(p->out, '}');
}

static void put_row(const struct kx_diff_printer *p, const struct kx_diff_row *row)
{
	kx_text_str(p->out, "{\"name\":");
	kx_text_json_string(p->out, kx_diff_name(p->sides, row));
	kx_text_str(p->out, ",\"module\":");
	kx_text_json_string(p->out, kx_diff_module(p->sides, row));
	kx_text_str(p->out, ",\"verdict\":");
	kx_text_json_string(p->out, kx_diff_verdict_name(row->verdict));
	put(p, "difference_ns", row->difference, "%.0f");
	put_change(p, "self_per_call", &row->self, true);
	put_change(p, "total_per_call", &row->total, true);
	put_change(p, "call_count", &row->calls, false);
	if (row->untraced)
		kx_text_str(p->out, ",\"untraced\":true");
	if (row->callee_sampled)
		kx_text_str(p->out, ",\"callee_sampled\":true");
	put_numbers(p, row, 0);
	put_numbers(p, row, 1);
	kx_text_char(p->out, '}');
}

static void put_side(const struct kx_diff_printer *p, int side)
{
	kx_text_str(p->out, side ? ",\n\"b\":{" : ",\n\"a\":{");
	kx_totals_json(p->out, kx_diff_get_totals(p->diff, side),
		       kx_fdr_get_info(p->sides[side].file));
	kx_text_str(p->out, ",\"file\":");
	kx_text_json_string(p->out, p->o->paths[side]);
	kx_text_char(p->out, '}');
}

void kx_diff_print_json(const struct kx_diff_printer *p)
{
	const struct kx_diff_summary *s = p->summary;

	kx_text_str(p->out, "{" KX_JSON_SCHEMA_TEXT ",\"unit\":");
	kx_text_str(p->out, s->has_frequency ? "\"ns\"" : "\"ticks\"");
	if (p->o->host) {
		kx_text_str(p->out, ",\"host\":");
		kx_text_json_string(p->out, p->o->host);
	}
	put_side(p, 0);
	put_side(p, 1);
	kx_text_str(p->out,
		    s->per == KX_DIFF_PER_RUN ? ",\n\"per\":\"run\"" : ",\n\"per\":\"second\"");
	put(p, "scale_b", s->scale, "%.9f");
	kx_text_str(p->out, ",\"common\":{\"functions\":");
	kx_text_u64(p->out, s->common.functions);
	put(p, "change", s->common.functions ? expm1(s->common.change[KX_NOISE_SELF_MEDIAN]) : NAN,
	    "%.6f");
	put(p, "noise", s->common.functions ? expm1(s->common.margin[KX_NOISE_SELF_MEDIAN]) : NAN,
	    "%.6f");
	kx_text_str(p->out, s->common.found[KX_NOISE_SELF_MEDIAN] ? ",\"subtracted\":true}"
								  : ",\"subtracted\":false}");
	kx_text_str(p->out, ",\"method\":{\"name\":\"bootstrap over time slices\"");
	kx_text_json_u64(p->out, "replicates", s->common.replicates);
	kx_text_json_u64(p->out, "slices", KX_SLICES);
	put(p, "false_alarm", KX_NOISE_FALSE_ALARM, "%g");
	put(p, "least_change", KX_DIFF_LEAST, "%g");
	kx_text_char(p->out, '}');
	kx_text_json_u64(p->out, "judged", s->judged);
	kx_text_json_u64(p->out, "changed", s->beyond);
	kx_text_json_u64(p->out, "all_functions", p->nrows);
	kx_text_str(p->out, ",\n\"functions\":[");
	for (size_t i = 0; i < p->shown; i++) {
		kx_text_str(p->out, i ? ",\n" : "\n");
		put_row(p, p->rows[i]);
	}
	kx_text_str(p->out, "\n]}\n");
}
