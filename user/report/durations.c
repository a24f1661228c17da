// SPDX-License-Identifier: BSD-2-Clause
#include "report/durations.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "calls/calls_filter.h"
#include "report/report_format.h"
#include "report/report_head.h"

#define BAR 50 /* characters, without a screen */

struct walk {
	struct kx_durations_set *set;
	struct kx_ready_filter functions;
	uint64_t hz;
};

static int find(struct kx_durations_set *s, uint32_t func, struct kx_durations **out)
{
	uint32_t index;
	int r = kx_pair_index(&s->index, 0, func, &index);

	if (r > 0 && KX_ARRAY_RESERVE(s->items, s->room, index))
		return -ENOMEM;
	if (r > 0)
		s->items[index] = (struct kx_durations){ .func = func, .min = UINT64_MAX };
	if (r >= 0)
		*out = &s->items[index];
	return r < 0 ? r : 0;
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct walk *w = ctx;

	(void)t;
	kx_walk_enter(&w->set->totals, call);
	return 0;
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc, enum kx_leave how)
{
	struct walk *w = ctx;
	struct kx_durations *d;
	uint64_t took;
	int r;

	(void)t;
	kx_walk_leave(&w->set->totals, tsc, how);
	if (!kx_filter_wants(&w->functions, call->func))
		return 0;
	r = find(w->set, call->func, &d);
	if (r)
		return r;
	d->open += how == KX_LEAVE_OPEN;
	d->no_exit += how == KX_LEAVE_REPAIRED;
	if (!kx_leave_is_measured(how))
		return 0;
	took = kx_trace_ns(call->took, w->hz);
	d->count++;
	d->sum += took;
	d->min = took < d->min ? took : d->min;
	d->max = took > d->max ? took : d->max;
	d->buckets[took ? 63 - __builtin_clzll(took) : 0]++;
	return 0;
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct walk *w = ctx;

	(void)t;
	(void)tsc;
	w->set->totals.t.threads++;
	return 0;
}

int kx_durations_read(struct kx_calls *calls, struct kx_symbolizer *names, const struct kx_durations_options *o,
		      struct kx_durations_set *s, struct kx_err *err)
{
	struct walk w = { .set = s, .hz = o->info->tsc_hz };
	const struct kx_call_filter match = { .include = &o->function, .ninclude = 1 };
	const struct kx_call_visitor visitor = { .enter = on_enter, .leave = on_leave, .end = on_end, .ctx = &w };
	int r = kx_filter_init(&w.functions, &match, names, o->info->tsc_hz, err);

	if (!r)
		r = kx_calls_walk(calls, KX_ORDER_THREAD, &visitor, NULL, NULL, err);
	if (r == -ENOMEM)
		kx_err_set(err, r, "out of memory for the durations");
	if (!r) {
		kx_walk_end(&s->totals, calls, o->session, o->whole);
		if (!s->index.count)
			r = kx_err_set(err, -ENODATA, "no call of the trace is of a function that matches '%s'",
				       o->function);
	}
	kx_filter_free(&w.functions);
	return r;
}

void kx_durations_free(struct kx_durations_set *s)
{
	kx_pair_map_free(&s->index);
	free(s->items);
	memset(s, 0, sizeof(*s));
}

/* Text */

static int compare(const void *pa, const void *pb)
{
	const struct kx_durations *a = pa, *b = pb;

	if (a->sum != b->sum)
		return a->sum > b->sum ? -1 : 1;
	return a->func < b->func ? -1 : a->func > b->func;
}

static void first_and_last(const struct kx_durations *d, unsigned *first, unsigned *last)
{
	*first = 0;
	*last = KX_DURATION_BUCKETS - 1;
	while (*first < *last && !d->buckets[*first])
		++*first;
	while (*last > *first && !d->buckets[*last])
		--*last;
}

static void put_bars(const struct kx_durations *d, const struct kx_durations_options *o, struct kx_text_out *out)
{
	uint64_t hz = o->info->tsc_hz ? 1000000000 : 0, most = 1;
	int used = KX_TIME_WIDTH(hz) + 12 + 9 + 2, room = o->screen.columns ? (int)o->screen.columns - used : BAR;
	unsigned first, last;

	room = room < 1 ? 1 : room > 100 ? 100 : room;
	first_and_last(d, &first, &last);
	for (unsigned i = first; i <= last; i++)
		most = d->buckets[i] > most ? d->buckets[i] : most;
	kx_text_str(out, kx_screen_style(&o->screen, KX_STYLE_HEAD));
	kx_put_time_text(out, "FROM", hz);
	kx_text_field(out, 12, "CALLS", 5);
	kx_text_field(out, 9, "SHARE", 5);
	kx_text_str(out, kx_screen_style(&o->screen, KX_STYLE_PLAIN));
	kx_text_char(out, '\n');
	for (unsigned i = first; d->count && i <= last; i++) {
		double share = (double)d->buckets[i] / (double)d->count;
		int bar = (int)((double)d->buckets[i] / (double)most * room + 0.5);
		char text[32];

		kx_put_time(out, i ? 1ull << i : 0, hz);
		kx_put_number(out, 12, d->buckets[i]);
		snprintf(text, sizeof(text), "%7.1f %%", share * 100);
		kx_text_str(out, text);
		kx_text_str(out, bar || d->buckets[i] ? "  " : "");
		for (int k = 0; k < bar; k++)
			kx_text_char(out, '#');
		/* one call is not nothing */
		kx_text_str(out, !bar && d->buckets[i] ? "." : "");
		kx_text_char(out, '\n');
	}
}

/* "600 calls, 23.36 ms in all, 10 ns to 289.0 us, 2 still open" */
static void put_sums(const struct kx_durations *d, const struct kx_durations_options *o, struct kx_text_out *out)
{
	uint64_t hz = o->info->tsc_hz ? 1000000000 : 0;
	char texts[5][80], time[2][33];
	const char *pieces[5];
	size_t n = 0;

	for (size_t i = 0; i < 5; i++)
		pieces[i] = texts[i];
	snprintf(texts[n++], sizeof(texts[0]), "%" PRIu64 " call%s", d->count, d->count == 1 ? "" : "s");
	if (d->count) {
		time[0][kx_format_time(time[0], d->sum, hz)] = 0;
		snprintf(texts[n++], sizeof(texts[0]), "%s in all", time[0]);
		time[0][kx_format_time(time[0], d->min, hz)] = 0;
		time[1][kx_format_time(time[1], d->max, hz)] = 0;
		snprintf(texts[n++], sizeof(texts[0]), "%s to %s", time[0], time[1]);
	}
	if (d->open)
		snprintf(texts[n++], sizeof(texts[0]), "%" PRIu64 " still open", d->open);
	if (d->no_exit)
		snprintf(texts[n++], sizeof(texts[0]), "%" PRIu64 " without exit", d->no_exit);
	kx_put_pieces(out, &o->screen, pieces, n);
}

static void json_durations(const struct kx_durations *d, struct kx_symbolizer *names, struct kx_text_out *out)
{
	unsigned first, last;

	kx_text_str(out, "{\"name\":");
	kx_text_json_string(out, kx_trace_name(names, d->func));
	kx_text_str(out, ",\"module\":");
	kx_text_json_string(out, kx_trace_module(names, d->func));
	kx_text_json_u64(out, "id", d->func);
	kx_text_json_u64(out, "count", d->count);
	kx_text_json_u64(out, "open", d->open);
	kx_text_json_u64(out, "no_exit", d->no_exit);
	kx_text_json_u64(out, "sum_ns", d->sum);
	kx_text_json_u64(out, "min_ns", d->count ? d->min : 0);
	kx_text_json_u64(out, "max_ns", d->max);
	kx_text_str(out, ",\"buckets\":[");
	first_and_last(d, &first, &last);
	for (unsigned i = first; d->count && i <= last; i++) {
		kx_text_str(out, i > first ? ",{\"from_ns\":" : "{\"from_ns\":");
		kx_text_u64(out, i ? 1ull << i : 0);
		kx_text_json_u64(out, "count", d->buckets[i]);
		kx_text_char(out, '}');
	}
	kx_text_str(out, "]}");
}

int kx_durations_print(struct kx_durations_set *s, struct kx_symbolizer *names, const struct kx_durations_options *o,
		       struct kx_text_out *out, struct kx_err *err)
{
	size_t n = s->index.count, shown = o->limit && o->limit < n ? o->limit : n;
	char text[80];

	qsort(s->items, n, sizeof(*s->items), compare);
	if (o->json) {
		kx_text_char(out, '{');
		kx_totals_json(out, &s->totals.t, o->info);
		kx_text_str(out, ",\"histograms\":[");
	} else {
		kx_report_head(out, &o->screen, o->session, &s->totals.t, o->info);
	}
	for (size_t i = 0; i < shown; i++) {
		if (o->json) {
			kx_text_str(out, i ? ",\n" : "\n");
			json_durations(&s->items[i], names, out);
			continue;
		}
		kx_text_char(out, '\n');
		kx_put_function(out, &o->screen, kx_trace_name(names, s->items[i].func),
				kx_trace_module(names, s->items[i].func), o->screen.columns);
		kx_text_char(out, '\n');
		put_sums(&s->items[i], o, out);
		put_bars(&s->items[i], o, out);
	}
	snprintf(text, sizeof(text), "\nall %zu functions, %zu shown\n", n, shown);
	kx_text_str(out, o->json ? "\n]}\n" : shown < n ? text : "");
	return kx_view_flush(out, err);
}
