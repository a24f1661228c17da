// SPDX-License-Identifier: BSD-2-Clause
/*
 * How much two traces' times per call differ, and how much of that is noise.
 *
 * Method: calls of one run are not independent (caches, other threads, a processor that slows
 * down), so not calls but time is resampled. Each trace is divided into 64 slices of equal length
 * (slices.h), and bootstrap replicates are made of 16 random runs of 4 consecutive slices, of each
 * trace by itself and for all functions at once. The standard error of a change is its standard
 * deviation over these replicates, or what the calls' own variance gives if that is more. A change
 * is beyond noise if it is more than t standard errors, t from Student's distribution with the
 * number of runs as freedom, such that the probability of any false alarm in the whole comparison
 * is KX_NOISE_FALSE_ALARM (Bonferroni's correction: divided by the number of comparisons).
 *
 * Two statistics are compared for each function: the mean, which a few slow calls can change, and
 * the median, which they hardly do. A median's replicates come from how many calls are below the
 * median of all (Bahadur's representation), so that slices need no distributions of their own.
 *
 * A processor's speed differs between two runs, so changes are also compared with the median change
 * of the functions (kx_noise_common).
 */
#ifndef KX_DIFF_NOISE_H
#define KX_DIFF_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/slices.h"

#define KX_NOISE_FALSE_ALARM 0.001
#define KX_NOISE_RUN	     4 /* slices */
#define KX_NOISE_LEAST_SLICES                                                                    \
	24 /* with calls of a function; in fewer, its calls are taken as independent, with twice \
	      the error */
#define KX_NOISE_LEAST_CALLS 8 /* for that */
#define KX_NOISE_COMMON	     5 /* functions that the common change needs */
#define KX_NOISE_COMMON_MOST \
	1.25 /* a larger common change is no machine's, and is not subtracted */

/*
 * What slices cannot tell is how equal runs differ as a whole: another load, other caches, memory
 * laid out differently. That is taken from how much the changes of the functions scatter around
 * their median, those with the least noise, as far as their noise does not explain it: this many
 * times adds to the margins, as independent causes do.
 */
#define KX_NOISE_SCATTER 4

enum kx_noise_stat {
	KX_NOISE_SELF_MEAN,
	KX_NOISE_TOOK_MEAN, /* + enum kx_slice_time */
	KX_NOISE_SELF_MEDIAN,
	KX_NOISE_TOOK_MEDIAN,
	KX_NOISE_CALLS,
	KX_NOISE_STATS,
};

struct kx_noise_input {
	const struct kx_slices *slices[2]; /* of the same functions, in the same order: those with
					      the most self time first */
	size_t n;
	double unit;	 /* ticks of A in one of B */
	double scale;	 /* of B's number of calls */
	bool same_speed; /* look for no common change of times */
	bool same_load;	 /* the same for the number of calls */
};

/* Parts of A's value: 0.05 is 5 % more in B. */
struct kx_noise {
	bool judged;		       /* else there are too few calls for the rest */
	double recorded[KX_NOISE_STATS]; /* change as recorded */
	double change[KX_NOISE_STATS]; /* the same without the common change, if that was found */
	double margin[KX_NOISE_STATS]; /* t standard errors of that, and the scatter */
};

/* The median changes of the functions with the most self time, up to 256 of them. */
struct kx_noise_common {
	/* There are enough functions, and of times: that of KX_NOISE_SELF_MEDIAN is in the range of
	 * a machine's speed. */
	bool found[KX_NOISE_STATS];
	double change[KX_NOISE_STATS]; /* logarithm of B / A; 0 without functions */
	double margin[KX_NOISE_STATS]; /* t standard errors */
	size_t functions;	       /* 0: too few */
	unsigned replicates;
};

/* Fills @out, of in->n. The same input gives the same result. Errors: -ENOMEM. */
int kx_noise_estimate(const struct kx_noise_input *in, struct kx_noise *out,
		      struct kx_noise_common *common);

#endif
