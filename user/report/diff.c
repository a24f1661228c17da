// SPDX-License-Identifier: BSD-2-Clause
#include "report/diff.h"

#include <errno.h>
#include <stdlib.h>

#include "report/diff_rows.h"

struct kx_diff {
	struct kx_report *reports[2];
	struct kx_diff_row *rows;
	size_t nrows;
	struct kx_diff_summary summary;
};

static int read_side(struct kx_diff *d, const struct kx_diff_side *side, int i,
		     const struct kx_diff_options *options, struct kx_err *err)
{
	const struct kx_report_options o = {
		.session = (json_t *)(uintptr_t)side->session,
		.calls = side->calls,
		.raw = options->raw,
	};
	int r = kx_report_new(side->file, &o, &d->reports[i], err);

	if (!r && !kx_report_nfunctions(d->reports[i]))
		r = kx_err_set(err, -ENODATA,
			       "it contains no calls, so there is nothing to compare");
	return r;
}

static int check_clocks(const struct kx_diff_side sides[2], struct kx_err *err)
{
	bool a = kx_fdr_get_info(sides[0].file)->tsc_hz, b = kx_fdr_get_info(sides[1].file)->tsc_hz;

	if (a == b)
		return 0;
	return kx_err_set(err, -ENODATA,
			  "the trace does not contain its clock's frequency, and the other one "
			  "does, so their "
			  "times cannot be compared");
}

int kx_diff_new(const struct kx_diff_side sides[2], const struct kx_diff_options *options,
		struct kx_diff **out, int *which, struct kx_err *err)
{
	struct kx_diff *d = calloc(1, sizeof(*d));
	struct kx_diff_work w = { .sides = sides, .options = options };
	int r = 0;

	*which = -1;
	if (!d)
		return kx_err_set(err, -ENOMEM, "out of memory for the comparison");
	for (int i = 0; i < 2 && !r; i++) {
		r = read_side(d, &sides[i], i, options, err);
		w.reports[i] = d->reports[i];
		*which = i;
	}
	if (!r) {
		r = check_clocks(sides, err);
		*which = kx_fdr_get_info(sides[0].file)->tsc_hz != 0;
	}
	if (!r)
		r = kx_diff_make_rows(&w, &d->rows, &d->nrows, &d->summary, which, err);
	if (r) {
		kx_diff_free(d);
		return r;
	}
	*out = d;
	return 0;
}

void kx_diff_free(struct kx_diff *d)
{
	if (!d)
		return;
	kx_report_free(d->reports[0]);
	kx_report_free(d->reports[1]);
	free(d->rows);
	free(d);
}

const struct kx_diff_summary *kx_diff_get_summary(const struct kx_diff *d)
{
	return &d->summary;
}

const struct kx_report_totals *kx_diff_get_totals(const struct kx_diff *d, int side)
{
	return kx_report_get_totals(d->reports[side]);
}

const struct kx_diff_row *kx_diff_get_rows(const struct kx_diff *d, size_t *n)
{
	*n = d->nrows;
	return d->rows;
}

const char *kx_diff_verdict_name(enum kx_diff_verdict verdict)
{
	static const char *const names[] = {
		[KX_DIFF_SLOWER] = "slower",
		[KX_DIFF_FASTER] = "faster",
		[KX_DIFF_CALLEES_SLOWER] = "callees slower",
		[KX_DIFF_CALLEES_FASTER] = "callees faster",
		[KX_DIFF_MORE] = "more calls",
		[KX_DIFF_FEWER] = "fewer calls",
		[KX_DIFF_NEW] = "new",
		[KX_DIFF_GONE] = "gone",
		[KX_DIFF_UNCLEAR] = "unclear",
		[KX_DIFF_NOISE] = "noise",
		[KX_DIFF_FEW] = "not judged",
	};

	return names[verdict];
}

int kx_diff_find_slower(const struct kx_diff *d, double least, const struct kx_diff_row ***rows,
			size_t *n)
{
	*n = 0;
	*rows = calloc(d->nrows + 1, sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	for (size_t i = 0; i < d->nrows; i++)
		if (d->rows[i].verdict == KX_DIFF_SLOWER && d->rows[i].self.change > least)
			(*rows)[(*n)++] = &d->rows[i];
	for (size_t i = 0, none = !*n; none && i < d->nrows; i++)
		if (d->rows[i].total.beyond && d->rows[i].total.change > least)
			(*rows)[(*n)++] = &d->rows[i];
	return 0;
}
