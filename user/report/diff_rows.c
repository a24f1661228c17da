// SPDX-License-Identifier: BSD-2-Clause
#include "report/diff_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "base/string_set.h"

#define SAME 0.02 /* durations or counts that differ by less are equal */
#define WAITS                                                                                \
	4 /* what changed as recorded by less than this part of its change waits rather than \
	     computes */

/* ns of a tick; 1 without a frequency. */
static double unit_of(const struct kx_diff_work *w, int side)
{
	uint64_t hz = kx_fdr_get_info(w->sides[side].file)->tsc_hz;

	return hz ? 1e9 / (double)hz : 1;
}

static void read_numbers(const struct kx_diff_work *w, int side, uint32_t index,
			 struct kx_diff_row *row)
{
	struct kx_diff_numbers *out = &row->in[side];
	const struct kx_budget_entry *e;
	double unit = unit_of(w, side), factor = 1;
	struct kx_report_function f;

	if (index == KX_DIFF_NONE)
		return;
	kx_report_get_function(w->reports[side], index, &f);
	e = w->sides[side].budget ? kx_budget_info_find(w->sides[side].budget, f.id) : NULL;
	if (e && e->recorded)
		factor = (double)e->calls / (double)e->recorded;
	row->id[side] = f.id;
	*out = (struct kx_diff_numbers){
		.calls = f.count - f.no_exit,
		.count = (double)f.count * factor,
		.total = (double)f.total * unit * factor,
		.self = (double)f.self * unit * factor,
		.p50 = (double)f.p50 * unit,
		.p99 = (double)f.p99 * unit,
	};
	if (out->calls)
		out->mean = (double)f.total * unit / (double)out->calls;
}

static int compare_doubles(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

/* Whether most functions that both have were called equally often: then both did the same work.
 * Errors: -ENOMEM. */
static int are_counts_same(const struct kx_diff_row *rows, size_t n, bool *same)
{
	double *ratios = calloc(n + 1, sizeof(*ratios));
	size_t used = 0;

	if (!ratios)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (rows[i].in[0].count > 0 && rows[i].in[1].count > 0)
			ratios[used++] = fabs(log(rows[i].in[1].count / rows[i].in[0].count));
	qsort(ratios, used, sizeof(*ratios), compare_doubles);
	*same = used && ratios[used / 2] <= SAME;
	free(ratios);
	return 0;
}

static int choose_scale(const struct kx_diff_work *w, const struct kx_diff_row *rows, size_t n,
			struct kx_diff_summary *s)
{
	bool same = false;
	int r = 0;

	s->has_frequency = kx_fdr_get_info(w->sides[0].file)->tsc_hz;
	for (int i = 0; i < 2; i++) {
		const struct kx_report_totals *t = kx_report_get_totals(w->reports[i]);
		uint64_t hz = kx_fdr_get_info(w->sides[i].file)->tsc_hz;

		s->seconds[i] = (double)(t->last_tsc - t->first_tsc) / (hz ? (double)hz : 1);
	}
	s->scale = s->seconds[0] > 0 && s->seconds[1] > 0 ? s->seconds[0] / s->seconds[1] : 1;
	s->per = w->options->per;
	if (s->per == KX_DIFF_PER_AUTO) {
		same = fabs(log(s->scale)) <= SAME;
		if (!same)
			r = are_counts_same(rows, n, &same);
		s->per = same ? KX_DIFF_PER_RUN : KX_DIFF_PER_SECOND;
	}
	if (s->per == KX_DIFF_PER_RUN)
		s->scale = 1;
	return r;
}

/*
 * The part of a function's mean or median that may be wrong since the probes' own time is not known
 * exactly; the larger of both traces.
 */
static double probes_error(const struct kx_slices *const slices[2], size_t index,
			   enum kx_slice_time time, bool median)
{
	double most = 0;

	for (int i = 0; i < 2; i++) {
		const struct kx_slice_function *f = kx_slices_function(slices[i], index);
		double calls = (double)f->calls,
		       value = median ? f->center[time] : f->sum[time] / calls;
		double part = f->uncertain[time] / calls;

		part = value > 0 ? part / value : part > 0 ? INFINITY : 0;
		most = part > most ? part : most;
	}
	return most;
}

/* Independent causes of noise add up as squares; what differs as a part of B's value counts by
 * that. */
static double add_margins(double margin, double least, double probes, double change)
{
	double ratio = change > 0 ? 1 + change : 1;

	return sqrt(margin * margin + ratio * ratio * (least * least + probes * probes));
}

/* One statistic of times. */
static struct kx_diff_change judge(const struct kx_noise *noise, enum kx_noise_stat stat,
				   double probes, const struct kx_noise_common *common)
{
	double recorded = noise->recorded[stat], change = noise->change[stat];
	double margin = add_margins(noise->margin[stat], KX_DIFF_LEAST, probes, change);
	bool waits = common->found[stat] && recorded * change < change * change / WAITS;

	return (struct kx_diff_change){
		.judged = true,
		.recorded = recorded,
		.change = change,
		.noise = margin,
		.beyond = fabs(change) > margin && !waits,
		.unclear = fabs(change) > margin && waits,
	};
}

/* That of mean and median which is beyond noise, or the one with less noise. */
static struct kx_diff_change judge_times(const struct kx_slices *const slices[2], size_t index,
					 enum kx_slice_time time, const struct kx_noise *noise,
					 const struct kx_noise_common *common)
{
	struct kx_diff_change by_mean = judge(noise, KX_NOISE_SELF_MEAN + time,
					      probes_error(slices, index, time, false), common);
	struct kx_diff_change by_median = judge(noise, KX_NOISE_SELF_MEDIAN + time,
						probes_error(slices, index, time, true), common);

	by_median.by_median = true;
	if (by_mean.beyond != by_median.beyond)
		return by_mean.beyond ? by_mean : by_median;
	if (by_mean.unclear != by_median.unclear)
		return by_mean.unclear ? by_mean : by_median;
	return by_mean.noise < by_median.noise ? by_mean : by_median;
}

/* It calls no traced function: its total time is its self time. */
static bool is_leaf(const struct kx_slices *const slices[2], size_t index)
{
	for (int i = 0; i < 2; i++) {
		const struct kx_slice_function *f = kx_slices_function(slices[i], index);

		if (f->sum[KX_SLICE_SELF] != f->sum[KX_SLICE_TOOK])
			return false;
	}
	return true;
}

static void judge_row(const struct kx_slices *const slices[2], size_t index,
		      const struct kx_noise *noise, const struct kx_diff_summary *s,
		      struct kx_diff_row *row)
{
	const struct kx_noise_common *common = &s->common;
	double change, margin;

	for (int i = 0; i < 2; i++)
		row->callee_sampled =
			row->callee_sampled || kx_slices_function(slices[i], index)->calls_sampled;
	if (!noise->judged)
		return;
	if (row->in[0].self > 0 && row->in[1].self > 0)
		row->self = judge_times(slices, index, KX_SLICE_SELF, noise, common);
	if (is_leaf(slices, index))
		row->total = row->self;
	else if (row->in[0].total > 0 && row->in[1].total > 0)
		row->total = judge_times(slices, index, KX_SLICE_TOOK, noise, common);
	/* less what most functions were called more often: that is load */
	change = row->in[1].count * s->scale / row->in[0].count;
	change *= common->found[KX_NOISE_CALLS] ? exp(-common->change[KX_NOISE_CALLS]) : 1;
	/* of sampled functions more calls are known than the noise is from */
	margin = noise->margin[KX_NOISE_CALLS] *
		 fmax(1, change / (1 + noise->change[KX_NOISE_CALLS]));
	change -= 1;
	margin = add_margins(margin, KX_DIFF_LEAST, 0, change);
	row->calls = (struct kx_diff_change){
		.judged = true,
		.recorded = row->in[1].count / row->in[0].count - 1,
		.change = change,
		.noise = margin,
		.beyond = fabs(change) > margin,
	};
}

static enum kx_diff_verdict verdict_of(const struct kx_diff_row *row)
{
	if (row->index.a == KX_DIFF_NONE)
		return KX_DIFF_NEW;
	if (row->index.b == KX_DIFF_NONE)
		return KX_DIFF_GONE;
	if (row->self.beyond && !row->callee_sampled)
		return row->self.change > 0 ? KX_DIFF_SLOWER : KX_DIFF_FASTER;
	if (row->total.beyond)
		return row->total.change > 0 ? KX_DIFF_CALLEES_SLOWER : KX_DIFF_CALLEES_FASTER;
	if (row->calls.beyond)
		return row->calls.change > 0 ? KX_DIFF_MORE : KX_DIFF_FEWER;
	if (row->self.unclear || row->total.unclear)
		return KX_DIFF_UNCLEAR;
	return row->self.judged || row->total.judged ? KX_DIFF_NOISE : KX_DIFF_FEW;
}

/* Of a function that is called in both traces. */
struct weight {
	double self; /* of both */
	uint32_t a;  /* index in the first report */
	uint32_t row;
};

/* Those with the most self time first. */
static int compare_weights(const void *pa, const void *pb)
{
	const struct weight *x = pa, *y = pb;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	return (x->a > y->a) - (x->a < y->a);
}

/* Which rows are judged: sorted by themselves, as rows are large. *@list is the caller's to free. -ENOMEM, else 0. */
static int list_judged(const struct kx_diff_row *rows, size_t n, struct weight **list, size_t *judged)
{
	*judged = 0;
	*list = calloc(n + 1, sizeof(**list));
	if (!*list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct kx_diff_numbers *in = rows[i].in;

		if (in[0].calls && in[1].calls)
			(*list)[(*judged)++] =
				(struct weight){ in[0].self + in[1].self, rows[i].index.a, (uint32_t)i };
	}
	qsort(*list, *judged, sizeof(**list), compare_weights);
	if (*judged > KX_DIFF_JUDGED)
		*judged = KX_DIFF_JUDGED;
	return 0;
}

static int compare_differences(const void *pa, const void *pb)
{
	const struct kx_diff_row *a = pa, *b = pb;
	bool change_a = kx_diff_is_change(a->verdict), change_b = kx_diff_is_change(b->verdict);
	double by_a = fabs(a->difference), by_b = fabs(b->difference);

	if (change_a != change_b)
		return change_a ? -1 : 1;
	if (by_a != by_b)
		return by_a > by_b ? -1 : 1;
	if (a->index.a != b->index.a)
		return a->index.a < b->index.a ? -1 : 1;
	return (a->index.b > b->index.b) - (a->index.b < b->index.b);
}

static int judge_rows(const struct kx_diff_work *w, const struct kx_slices *const slices[2],
		      struct kx_diff_row *rows, const struct weight *list, size_t n, struct kx_diff_summary *s)
{
	const struct kx_noise_input in = {
		.slices = { slices[0], slices[1] },
		.n = n,
		.unit = unit_of(w, 1) / unit_of(w, 0),
		.scale = s->scale,
		.same_speed = w->options->same_speed,
		.same_load = w->options->per == KX_DIFF_PER_RUN,
	};
	struct kx_noise *noise = kx_large_calloc(n + 1, sizeof(*noise));
	int r = noise ? kx_noise_estimate(&in, noise, &s->common) : -ENOMEM;

	for (size_t i = 0; !r && i < n; i++) {
		judge_row(slices, i, &noise[i], s, &rows[list[i].row]);
		s->judged += noise[i].judged;
	}
	free(noise);
	return r;
}

/* Reads the slices of the listed rows of one trace. */
static int read_slices(const struct kx_diff_work *w, int side, const struct kx_diff_row *rows,
		       const struct weight *list, size_t n, struct kx_slices **out, struct kx_err *err)
{
	const struct kx_diff_side *from = &w->sides[side];
	const struct kx_report_totals *t = kx_report_get_totals(w->reports[side]);
	uint32_t *ids = calloc(n + 1, sizeof(*ids));
	const struct kx_slices_input in = {
		.file = from->file,
		.calls = from->calls,
		.session = from->session,
		.budget = from->budget,
		.raw = w->options->raw,
		.first_tsc = t->first_tsc,
		.last_tsc = t->last_tsc,
		.ids = ids,
		.n = n,
	};
	int r;

	if (!ids)
		return kx_err_set(err, -ENOMEM, "out of memory for the slices of time");
	for (size_t i = 0; i < n; i++)
		ids[i] = rows[list[i].row].id[side];
	r = kx_slices_new(&in, out, err);
	free(ids);
	return r;
}

static int make_list(const struct kx_diff_work *w, struct kx_diff_row **out, size_t *n)
{
	struct kx_diff_pair *pairs = NULL;
	int r = kx_diff_match(w->reports[0], w->sides[0].names, w->reports[1], w->sides[1].names,
			      &pairs, n);

	*out = r ? NULL : kx_large_calloc(*n + 1, sizeof(**out));
	for (size_t i = 0; *out && i < *n; i++) {
		(*out)[i].index = pairs[i];
		read_numbers(w, 0, pairs[i].a, &(*out)[i]);
		read_numbers(w, 1, pairs[i].b, &(*out)[i]);
	}
	free(pairs);
	return *out ? r : -ENOMEM;
}

/* Marks functions that only the other trace than @side has and that the map of @side does not have. Errors: -ENOMEM. */
static int mark_untraced(const struct kx_diff_work *w, int side, struct kx_diff_row *rows, size_t n)
{
	const struct kx_symbolizer *names = w->sides[side].names, *others = w->sides[!side].names;
	enum kx_diff_verdict verdict = side ? KX_DIFF_GONE : KX_DIFF_NEW;
	struct kx_string_set set = { 0 };
	int r = 0;

	if (!names->has_map || !others->has_map)
		return 0;
	for (size_t i = 0; i < n && !r; i++) {
		uint32_t id = rows[i].id[!side];
		const char *symbol;

		if (rows[i].verdict != verdict || !id || id > others->map.nfunctions)
			continue;
		for (size_t f = 0; !set.count && f < names->map.nfunctions && !r; f++)
			if (names->map.functions[f].symbol)
				r = kx_string_set_add(&set, names->map.functions[f].symbol);
		symbol = others->map.functions[id - 1].symbol;
		rows[i].untraced = symbol && !kx_string_set_times(&set, symbol);
	}
	kx_string_set_free(&set);
	return r;
}

int kx_diff_make_rows(const struct kx_diff_work *w, struct kx_diff_row **out, size_t *nrows,
		      struct kx_diff_summary *s, int *which, struct kx_err *err)
{
	struct kx_slices *slices[2] = { NULL };
	struct weight *list = NULL;
	size_t n = 0, judged = 0;
	struct kx_diff_row *rows;
	int r = make_list(w, out, &n);

	rows = *out;
	*nrows = n;
	*which = -1;
	s->same_speed = w->options->same_speed;
	if (!r)
		r = choose_scale(w, rows, n, s);
	if (!r)
		r = list_judged(rows, n, &list, &judged);
	if (r)
		return kx_err_set(err, r, "out of memory for the comparison");
	for (int i = 0; i < 2 && !r; i++) {
		*which = i;
		r = read_slices(w, i, rows, list, judged, &slices[i], err);
	}
	if (!r) {
		*which = -1;
		r = judge_rows(w, (const struct kx_slices *const *)slices, rows, list, judged, s);
		if (r)
			kx_err_set(err, r, "out of memory for the comparison");
	}
	kx_slices_free(slices[0]);
	kx_slices_free(slices[1]);
	free(list);
	for (size_t i = 0; i < n && !r; i++) {
		rows[i].difference = rows[i].in[1].self * s->scale - rows[i].in[0].self;
		rows[i].verdict = verdict_of(&rows[i]);
		s->beyond += kx_diff_is_change(rows[i].verdict);
		s->unclear += rows[i].verdict == KX_DIFF_UNCLEAR;
	}
	for (int i = 0; i < 2 && !r; i++) {
		r = mark_untraced(w, i, rows, n);
		if (r)
			kx_err_set(err, r, "out of memory for the comparison");
	}
	for (size_t i = 0; i < n && !r; i++)
		s->untraced += rows[i].untraced;
	if (!r)
		qsort(rows, n, sizeof(*rows), compare_differences);
	return r;
}
