// SPDX-License-Identifier: BSD-2-Clause
/*
 * What changed between two traces: one row for each function, the change of its times per call and
 * of its calls, and whether that is more than noise (diff_noise.h). The callee that became slower
 * is blamed, not its callers: what counts first is self time. Rows are in the order of what
 * explains the difference: changes beyond noise first, and then by the change of self time.
 *
 * Memory grows with functions, not with events: for each trace that of a report, slices (slices.h),
 * and a row.
 */
#ifndef KX_DIFF_H
#define KX_DIFF_H

#include "report/diff_match.h"
#include "report/diff_noise.h"
#include "report/report.h"
#include "trace/budget_info.h"
#include "trace/symbolizer.h"

/* A change below this is never called one: equal runs differ by so much, since memory is laid out
 * differently. */
#define KX_DIFF_LEAST  0.02
#define KX_DIFF_JUDGED 4096 /* functions, those with the most self time */

enum kx_diff_per {
	KX_DIFF_PER_AUTO,
	KX_DIFF_PER_RUN,    /* counts and sums of the two are compared as they are */
	KX_DIFF_PER_SECOND, /* those of B are scaled to A's duration */
};

enum kx_diff_verdict {
	KX_DIFF_SLOWER,
	KX_DIFF_FASTER, /* self time per call */
	KX_DIFF_CALLEES_SLOWER,
	KX_DIFF_CALLEES_FASTER, /* total time per call, but not self time */
	KX_DIFF_MORE,
	KX_DIFF_FEWER, /* calls */
	KX_DIFF_NEW,
	KX_DIFF_GONE,
	KX_DIFF_UNCLEAR, /* unchanged as recorded, while most others changed: it waits, or became
			    slower on a faster machine */
	KX_DIFF_NOISE,
	KX_DIFF_FEW, /* too few calls, or too little self time, to say */
};

/* A trace. All is borrowed. */
struct kx_diff_side {
	struct kx_fdr_file *file;
	struct kx_symbolizer *names;
	struct kx_calls *calls; /* NULL: the whole file */
	const json_t *session;	/* of the map; may be NULL */
	const struct kx_budget_info *budget;
};

struct kx_diff_options {
	bool raw;	 /* times as recorded; with calls, those follow their filter */
	bool same_speed; /* both ran at the same speed: a change of most functions is not subtracted
			  */
	enum kx_diff_per per;
};

/* Parts of A's value: 0.05 is 5 % more in B. */
struct kx_diff_change {
	bool judged;
	double recorded; /* as recorded, of the mean or the median (by_median) */
	double change;	 /* less the common change */
	double noise;	 /* up to so much is noise */
	bool beyond;	 /* it is more than that */
	bool unclear;	 /* the same, but recorded is less than a quarter of it */
	bool by_median;
};

struct kx_diff_numbers {
	uint64_t calls; /* recorded, with those without exit and open ones at the end left out */
	double count;	/* calls; of a sampled function all that were counted */
	double total, self; /* ns (ticks without frequency), of count calls */
	double mean, p50, p99;
};

struct kx_diff_row {
	struct kx_diff_pair index; /* in the two reports; KX_DIFF_NONE: not there */
	uint32_t id[2];		   /* in the two traces */
	struct kx_diff_numbers in[2];
	double difference; /* of self time: B (scaled, see kx_diff_summary) less A; what explains
			      the difference */
	struct kx_diff_change self, total, calls;
	enum kx_diff_verdict verdict;
	/* new or gone: the other trace's map does not have it, so it did not exist there or was not traced */
	bool untraced;
	bool callee_sampled; /* calls of its callees are missing in a trace: its self time is not
				judged */
};

struct kx_diff_summary {
	enum kx_diff_per per; /* run or second */
	double scale;	      /* of B's counts and sums */
	double seconds[2];    /* ticks without frequency */
	bool has_frequency;
	struct kx_noise_common common;
	size_t judged;
	size_t beyond; /* rows whose verdict is a change */
	size_t unclear;
	size_t untraced;
	bool same_speed;
};

struct kx_diff;

/*
 * Reads both traces. Errors: -ENODATA (one has no calls, or only one a frequency of its clock: the
 * text begins with "A" or "B", which *@which names, 0 or 1; -1: it is about both), -EBADMSG,
 * -ENOMEM.
 */
int kx_diff_new(const struct kx_diff_side sides[2], const struct kx_diff_options *options,
		struct kx_diff **out, int *which, struct kx_err *err);
void kx_diff_free(struct kx_diff *d);

/* What they return lives as long as @d; @side: 0 or 1. */
const struct kx_diff_summary *kx_diff_get_summary(const struct kx_diff *d);
const struct kx_report_totals *kx_diff_get_totals(const struct kx_diff *d, int side);
const struct kx_diff_row *kx_diff_get_rows(const struct kx_diff *d, size_t *n);

/* Whether the verdict is a change beyond noise. */
static inline bool kx_diff_is_change(enum kx_diff_verdict verdict)
{
	return verdict < KX_DIFF_UNCLEAR;
}
/* "slower", "callees slower", ... */
const char *kx_diff_verdict_name(enum kx_diff_verdict verdict);

/*
 * Rows that became slower by more than @least (0.05: 5 %) beyond noise, in their order, in *@rows,
 * which the caller frees: by self time; if there are none, by total time. Errors: -ENOMEM.
 */
int kx_diff_find_slower(const struct kx_diff *d, double least, const struct kx_diff_row ***rows,
			size_t *n);

#endif
