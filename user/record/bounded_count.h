// SPDX-License-Identifier: BSD-2-Clause
/*
 * How often functions are called, found without slowing the program down for more than moments: before a
 * recording nobody knows which of its functions run a million times a second.
 *
 * The functions are counted in groups, the first one small, later ones larger while they cost little; a
 * group is detached as soon as its hits have cost STEP_NS of CPU time. What would break the budget by then
 * is set aside, with the rate that was seen. All others are then counted together for the time that
 * was asked for, under the same rule.
 *
 * A program that is slowed down makes fewer calls a second. Rates are therefore computed from the calls
 * per CPU time that the program had for itself, times the CPU time that it takes undisturbed.
 *
 * Cost: about 0.1 s for each group and 0.5 s for measuring what a hit costs.
 */
#ifndef KX_BOUNDED_COUNT_H
#define KX_BOUNDED_COUNT_H

#include "record/rate.h"

struct kx_bounded_options {
	const struct kx_select_process *procs; /* whose functions are counted; */
	const pid_t *pids;		       /* and their ids */
	size_t n;
	double seconds;	    /* for which the functions that stay are counted together */
	double max_percent; /* of the CPU time that the processes use: what recording may take */
};

/*
 * Counts the calls of the functions of @sel, which is planned as they will be recorded, and predicts
 * their cost. Free with kx_rates_free. Errors: those of kx_call_costs_measure, kx_tracer_new and
 * kx_probes_attach; -EINTR if a signal ended it; -ESRCH if no process is left.
 */
int kx_bounded_count(const struct kx_selection *sel, const struct kx_bounded_options *options,
		     struct kx_rates *out, struct kx_err *err);

/*
 * Sets aside the costliest of the @n functions until those that stay (@in) take at most @budget
 * percent. Returns how many were set aside.
 */
size_t kx_bounded_set_aside(const double *percent, bool *in, size_t n, double budget);

#endif
