// SPDX-License-Identifier: BSD-2-Clause
/*
 * Choosing functions by how often they are called: record without -f, and record --by-heat. All that
 * together stay within the budget are traced, cheapest first, so that as many functions as possible are:
 * what is left out are those that are called most.
 */
#ifndef KX_CALL_RATE_SELECTION_H
#define KX_CALL_RATE_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "select/select.h"

/*
 * Which of @n functions to trace, so that all together take at most @budget percent of a CPU:
 * @percent[i] is the cost of function i. Functions are added in the order of their cost; all without
 * cost are kept. Sets @keep; returns the cost of the kept functions.
 */
double kx_call_rates_choose(const double *percent, size_t n, double budget, bool *keep);

/* One that is called too often. */
struct kx_hot {
	char *name;
	char *path; /* of its module */
	uint64_t address;
	double per_second, percent; /* calls; of one CPU, if it were traced */
};

struct kx_call_rates_options {
	const pid_t *pids;
	size_t npids;
	double seconds;	     /* of counting */
	double max_overhead; /* percent of the CPU time that the processes use */
	bool by_size;	     /* without patterns the candidates are chosen by size, else all cheap ones */
	bool predict_only;   /* nothing is left out; max_overhead only bounds the counting */
};

struct kx_call_rates {
	struct kx_hot *hot; /* hottest first */
	size_t nhot;
	size_t nkept, ncalled; /* functions to trace, and those of them that were called */
	double seconds;     /* of counting */
	double percent;     /* of one CPU that recording the kept ones takes */
	double overhead;    /* the same, in percent of the CPU time that the processes use */
	bool cheap_only;    /* functions with a single-stepped entry were not looked at */
	struct kx_select_options select; /* for the recording: the choice is made */
};

/*
 * Counts calls (see bounded_count.h) and chooses. Without patterns in @options and without by_size the
 * candidates are all functions of the main executable but those with an expensive entry. @out->select
 * refers to @out, which must not move while the selection exists; free with kx_call_rates_free.
 * Errors: those of kx_select_functions and kx_bounded_count.
 */
int kx_call_rates_select(const struct kx_call_rates_options *how,
			 const struct kx_select_options *options, struct kx_call_rates *out,
			 struct kx_err *err);
void kx_call_rates_free(struct kx_call_rates *h);

#endif
