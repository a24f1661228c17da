// SPDX-License-Identifier: BSD-2-Clause
#include "report/diff_noise.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/student.h"

#define RUNS		 (KX_SLICES / KX_NOISE_RUN) /* in a replicate */
#define MOST_COMMON	 256
#define MOST_REPLICATES	 400
#define LEAST_REPLICATES 100
#define WORK		 60000000 /* slices to add up in all replicates; about a tenth of a second */
#define SEED		 88172645463325252u
#define LEAST_PART	 0.005 /* quantiles closer to an end are not estimated */

struct function {
	const struct kx_slice_function *in[2];		    /* of the traces */
	double below[2][KX_SLICE_TIMES];		    /* part of the calls below the center */
	double sum[KX_NOISE_STATS], square[KX_NOISE_STATS]; /* over the replicates */
	double value[2][KX_NOISE_STATS];		    /* of the traces; times in ticks of A */
	double now[2][KX_NOISE_STATS];			    /* the same in the current replicate */
	bool by_slices;
};

struct estimate {
	const struct kx_noise_input *in;
	struct function *functions;
	struct kx_noise *out;
	double weights[2][KX_SLICES];	     /* how often each slice is in the replicate */
	size_t common[MOST_COMMON], ncommon; /* indexes */
	unsigned replicates;
	uint64_t random;
	double common_sum[KX_NOISE_STATS], common_square[KX_NOISE_STATS];
	double scatter[KX_NOISE_STATS]; /* of the changes, beyond their own noise */
};

/* xorshift64*, so that the same traces give the same answer. */
static uint32_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)(*state * 0x2545f4914f6cdd1du >> 32);
}

static void draw(double weights[KX_SLICES], uint64_t *random)
{
	memset(weights, 0, KX_SLICES * sizeof(*weights));
	for (unsigned i = 0; i < RUNS; i++) {
		unsigned at = next_random(random) % KX_SLICES;

		for (unsigned k = 0; k < KX_NOISE_RUN; k++)
			weights[(at + k) % KX_SLICES]++;
	}
}

/* Less than a tick is no time: a ratio to it would be meaningless. */
static double at_least_a_tick(double ticks)
{
	return ticks > 1 ? ticks : 1;
}

/* The time that @part of the calls do not reach; within the range of kx_slice_function. */
static double quantile(const struct kx_slice_function *f, enum kx_slice_time time, double part)
{
	const uint32_t *parts = f->parts[time];
	double wanted = part * (double)f->calls, before;
	unsigned low = 0, high = KX_SLICE_PARTS + 1;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (parts[middle] < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return KX_SLICE_FROM * f->center[time];
	if (low > KX_SLICE_PARTS)
		return KX_SLICE_TO * f->center[time];
	before = parts[low - 1];
	return f->center[time] *
	       (KX_SLICE_FROM + (KX_SLICE_TO - KX_SLICE_FROM) / KX_SLICE_PARTS *
					(low - 1 + (wanted - before) / (parts[low] - before)));
}

/* A trace's statistics with the current weights; false if there is no call. */
static bool find_values(const struct estimate *e, const struct function *f, int side,
			double out[KX_NOISE_STATS])
{
	double calls = 0, below[KX_SLICE_TIMES] = { 0 }, sum[KX_SLICE_TIMES] = { 0 };
	const struct kx_slice_function *in = f->in[side];
	double unit = side ? e->in->unit : 1;

	for (unsigned i = 0; i < KX_SLICES; i++) {
		const struct kx_slice *slice = &in->slices[i];
		double weight = e->weights[side][i];

		calls += weight * slice->calls;
		for (int k = 0; k < KX_SLICE_TIMES; k++) {
			below[k] += weight * slice->below[k];
			sum[k] += weight * slice->sum[k];
		}
	}
	if (calls == 0)
		return false;
	for (int k = 0; k < KX_SLICE_TIMES; k++) {
		double part = 0.5 + f->below[side][k] - below[k] / calls;

		part = part < LEAST_PART       ? LEAST_PART
		       : part > 1 - LEAST_PART ? 1 - LEAST_PART
					       : part;
		out[KX_NOISE_SELF_MEAN + k] = at_least_a_tick(sum[k] / calls) * unit;
		out[KX_NOISE_SELF_MEDIAN + k] = at_least_a_tick(quantile(in, k, part)) * unit;
	}
	out[KX_NOISE_CALLS] = calls * (side ? e->in->scale : 1);
	return true;
}

static int compare_doubles(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

static double median_of(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare_doubles);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The median change, as a logarithm, in the current replicate. */
static double common_of(const struct estimate *e, int stat)
{
	double values[MOST_COMMON];

	for (size_t i = 0; i < e->ncommon; i++) {
		const struct function *f = &e->functions[e->common[i]];

		values[i] = log(f->now[1][stat] / f->now[0][stat]);
	}
	return median_of(values, e->ncommon);
}

static void add_replicate(struct estimate *e, const struct kx_noise_common *common)
{
	double factor[KX_NOISE_STATS]; /* takes the common change from B's values */

	draw(e->weights[0], &e->random);
	draw(e->weights[1], &e->random);
	for (size_t i = 0; i < e->in->n; i++) {
		struct function *f = &e->functions[i];

		if (f->by_slices &&
		    !(find_values(e, f, 0, f->now[0]) && find_values(e, f, 1, f->now[1])))
			memcpy(f->now, f->value, sizeof(f->now));
	}
	for (int k = 0; k < KX_NOISE_STATS; k++) {
		double now = e->ncommon ? common_of(e, k) : 0, moved = now - common->change[k];

		e->common_sum[k] += moved;
		e->common_square[k] += moved * moved;
		factor[k] = common->found[k] ? exp(-now) : 1;
	}
	for (size_t i = 0; i < e->in->n; i++) {
		struct function *f = &e->functions[i];

		for (int k = 0; f->by_slices && k < KX_NOISE_STATS; k++) {
			/* less the change itself, so that squares keep their digits */
			double value = (f->now[1][k] * factor[k] - f->now[0][k]) / f->value[0][k] -
				       e->out[i].change[k];

			f->sum[k] += value;
			f->square[k] += value * value;
		}
	}
}

static double deviation(double sum, double square, double n)
{
	double variance = (square - sum * sum / n) / (n - 1);

	return variance > 0 ? sqrt(variance) : 0;
}

/* Standard errors from the calls alone, as if they were independent, as parts of the values. */
static void errors_of_calls(const struct kx_slice_function *f, double out[KX_NOISE_STATS])
{
	double n = (double)f->calls, step = fmin(0.5 / sqrt(n), 0.5 - LEAST_PART);

	for (int k = 0; k < KX_SLICE_TIMES; k++) {
		out[KX_NOISE_SELF_MEAN + k] = deviation(f->sum[k], f->square[k], n) /
					      at_least_a_tick(f->sum[k] / n) / sqrt(n);
		/* the ranks one standard error below and above the middle */
		out[KX_NOISE_SELF_MEDIAN + k] =
			(quantile(f, k, 0.5 + step) - quantile(f, k, 0.5 - step)) / 2 /
			at_least_a_tick(f->center[k]);
	}
	out[KX_NOISE_CALLS] = 1 / sqrt(n);
}

static unsigned slices_with_calls(const struct kx_slice_function *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < KX_SLICES; i++)
		n += f->slices[i].calls != 0;
	return n;
}

/* t for a margin with so many degrees of freedom. */
static double quantile_of(const struct estimate *e, unsigned freedom)
{
	double comparisons = (double)e->in->n * KX_NOISE_STATS * 2; /* both tails */

	return kx_student_quantile(KX_NOISE_FALSE_ALARM / comparisons, freedom);
}

/* By slices: the runs that have calls of the function, in both traces, less one each; else the
 * calls less one. */
static unsigned freedom_of(const struct function *f)
{
	const struct kx_slice_function *a = f->in[0], *b = f->in[1];
	unsigned slices_a = slices_with_calls(a), slices_b = slices_with_calls(b);
	uint64_t calls = a->calls < b->calls ? a->calls : b->calls;

	if (f->by_slices)
		return 2 * ((slices_a < slices_b ? slices_a : slices_b) / KX_NOISE_RUN) - 2;
	return calls < KX_SLICES ? (unsigned)calls - 1 : KX_SLICES - 1;
}

struct precise {
	double error, change;
};

static int compare_errors(const void *pa, const void *pb)
{
	const struct precise *a = pa, *b = pb;

	return (a->error > b->error) - (a->error < b->error);
}

/* Standard deviation by the median of absolute deviations, of the half with the smallest errors,
 * less their own. */
static double scatter_of(const struct estimate *e, int stat, double common)
{
	size_t n = (e->ncommon + 1) / 2 > KX_NOISE_COMMON ? (e->ncommon + 1) / 2 : KX_NOISE_COMMON;
	struct precise list[MOST_COMMON];
	double away[MOST_COMMON], all;

	for (size_t i = 0; i < e->ncommon; i++) {
		const struct function *f = &e->functions[e->common[i]];

		list[i].error = deviation(f->sum[stat], f->square[stat], e->replicates);
		list[i].change = (1 + e->out[e->common[i]].recorded[stat]) * exp(-common) - 1;
	}
	qsort(list, e->ncommon, sizeof(*list), compare_errors);
	for (size_t i = 0; i < n; i++)
		away[i] = fabs(list[i].change);
	all = pow(1.4826 * median_of(away, n), 2) - pow(list[n / 2].error, 2);
	return all > 0 ? sqrt(all) : 0;
}

static void set_margins(const struct estimate *e, size_t index, double quantiles[KX_SLICES])
{
	const struct function *f = &e->functions[index];
	double errors[2][KX_NOISE_STATS];
	unsigned freedom = freedom_of(f);

	if (quantiles[freedom] == 0)
		quantiles[freedom] = quantile_of(e, freedom);
	for (int i = 0; i < 2; i++)
		errors_of_calls(f->in[i], errors[i]);
	for (int k = 0; k < KX_NOISE_STATS; k++) {
		double ratio = 1 + e->out[index].change[k], slices = 0;
		double error = hypot(errors[0][k], errors[1][k] * ratio);

		if (f->by_slices)
			slices = deviation(f->sum[k], f->square[k], e->replicates);
		else
			error *= 2;
		e->out[index].margin[k] =
			hypot(quantiles[freedom] * (slices > error ? slices : error),
			      KX_NOISE_SCATTER * e->scatter[k] * (ratio > 1 ? ratio : 1));
	}
}

/* The values of both traces, which functions can be judged, and how many replicates there is time
 * for. */
static void begin_functions(struct estimate *e)
{
	uint64_t slices = 1;

	for (size_t i = 0; i < e->in->n; i++) {
		const struct kx_slice_function *a = kx_slices_function(e->in->slices[0], i);
		const struct kx_slice_function *b = kx_slices_function(e->in->slices[1], i);
		struct function *f = &e->functions[i];

		*f = (struct function){ .in = { a, b } };
		for (int side = 0; side < 2; side++)
			for (int k = 0; k < KX_SLICE_TIMES && f->in[side]->calls; k++) {
				for (unsigned n = 0; n < KX_SLICES; n++)
					f->below[side][k] += f->in[side]->slices[n].below[k];
				f->below[side][k] /= (double)f->in[side]->calls;
			}
		f->by_slices = slices_with_calls(a) >= KX_NOISE_LEAST_SLICES &&
			       slices_with_calls(b) >= KX_NOISE_LEAST_SLICES;
		e->out[i].judged = f->by_slices || (a->calls >= KX_NOISE_LEAST_CALLS &&
						    b->calls >= KX_NOISE_LEAST_CALLS);
		for (int side = 0; side < 2; side++)
			find_values(e, f, side, f->value[side]);
		memcpy(f->now, f->value, sizeof(f->now));
		if (f->by_slices && e->ncommon < MOST_COMMON)
			e->common[e->ncommon++] = i;
		slices += f->by_slices ? 2 * KX_SLICES : 0;
	}
	e->replicates = MOST_REPLICATES;
	if (WORK / slices < e->replicates)
		e->replicates = WORK / slices > LEAST_REPLICATES ? (unsigned)(WORK / slices)
								 : LEAST_REPLICATES;
}

static void find_common(struct estimate *e, struct kx_noise_common *common)
{
	if (e->ncommon < KX_NOISE_COMMON)
		e->ncommon = 0;
	common->functions = e->ncommon;
	common->replicates = e->replicates;
	if (!e->ncommon)
		return;
	for (int k = 0; k < KX_NOISE_STATS; k++) {
		common->change[k] = common_of(e, k);
		common->found[k] = k < KX_NOISE_CALLS ? !e->in->same_speed : !e->in->same_load;
	}
	if (fabs(common->change[KX_NOISE_SELF_MEDIAN]) > log(KX_NOISE_COMMON_MOST))
		for (int k = 0; k < KX_NOISE_CALLS; k++)
			common->found[k] = false;
}

static void set_changes(struct estimate *e, const struct kx_noise_common *common)
{
	for (size_t i = 0; i < e->in->n; i++)
		for (int k = 0; k < KX_NOISE_STATS; k++) {
			const struct function *f = &e->functions[i];
			double ratio = f->value[1][k] / f->value[0][k];

			e->out[i].recorded[k] = ratio - 1;
			e->out[i].change[k] =
				ratio * (common->found[k] ? exp(-common->change[k]) : 1) - 1;
		}
}

static void end_common(struct estimate *e, struct kx_noise_common *common)
{
	for (int k = 0; k < KX_NOISE_STATS && e->ncommon; k++) {
		common->margin[k] = quantile_of(e, 2 * RUNS - 2) *
				    deviation(e->common_sum[k], e->common_square[k], e->replicates);
		if (k < KX_NOISE_CALLS ? !e->in->same_speed : !e->in->same_load)
			e->scatter[k] = scatter_of(e, k, common->change[k]);
	}
}

int kx_noise_estimate(const struct kx_noise_input *in, struct kx_noise *out,
		      struct kx_noise_common *common)
{
	struct estimate e = { .in = in, .out = out, .random = SEED };
	double quantiles[KX_SLICES] = { 0 };

	memset(out, 0, in->n * sizeof(*out));
	*common = (struct kx_noise_common){ 0 };
	if (!in->n)
		return 0;
	e.functions = calloc(in->n, sizeof(*e.functions));
	if (!e.functions)
		return -ENOMEM;
	for (unsigned i = 0; i < KX_SLICES; i++)
		e.weights[0][i] = e.weights[1][i] = 1;
	begin_functions(&e);
	find_common(&e, common);
	set_changes(&e, common);
	for (unsigned i = 0; i < e.replicates; i++)
		add_replicate(&e, common);
	end_common(&e, common);
	for (size_t i = 0; i < in->n; i++)
		if (out[i].judged)
			set_margins(&e, i, quantiles);
	free(e.functions);
	return 0;
}
