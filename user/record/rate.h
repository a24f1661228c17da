// SPDX-License-Identifier: BSD-2-Clause
/*
 * How often the functions of running processes are called, and what recording them would cost. Here for a
 * time that the user asks for, all at once; kx_bounded_count does it without slowing the program down.
 */
#ifndef KX_RATE_H
#define KX_RATE_H

#include <stddef.h>
#include <sys/types.h>

#include "doctor/call_cost.h"
#include "base/err.h"
#include "select/select.h"

struct kx_rate {
	double per_second; /* calls of the function in all processes together */
	double cost_ns;    /* CPU time that recording one call takes; negative: not known */
	double percent;    /* of one CPU, at that rate */
};

struct kx_rates {
	struct kx_rate *items; /* by index in the selection's functions */
	double seconds;        /* for which calls were counted */
	double percent;        /* all together */
	double target_cpus;    /* CPUs that the processes take undisturbed; only of kx_bounded_count */
};

/*
 * Counts the calls of the functions of @sel in the processes @pids for @seconds, and measures costs.
 * @options: what @sel was selected with. Free with kx_rates_free. Errors: those of kx_recording_run
 * and kx_call_costs_measure; -EINTR if a signal ended the counting.
 */
int kx_rates_measure(const struct kx_selection *sel, const struct kx_select_options *options,
		     const pid_t *pids, size_t npids, double seconds, struct kx_rates *out,
		     struct kx_err *err);
void kx_rates_free(struct kx_rates *r);

#endif
