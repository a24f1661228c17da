// SPDX-License-Identifier: BSD-2-Clause
/* What recording one call costs on this machine, by how its function is probed. */
#ifndef KX_CALL_COST_H
#define KX_CALL_COST_H

#include <stdbool.h>

#include "tracer/uprobe_link.h"
#include "base/err.h"
#include "plan/plan.h"

struct kx_call_costs {
	double entry_ns[KX_COST_STEPPED + 1];  /* a call of which the entry alone is recorded */
	double return_ns[KX_COST_STEPPED + 1]; /* ... and its exit by a return probe */
	double cold_ns[KX_COST_STEPPED + 1];   /* more than either, if the program has used the first-level caches since */
	double syscall_ns;                     /* a system call, entry and exit */
	double event_ns; /* an entry or exit on its way from the ring to the file; on any CPU */
};

/*
 * Measures them by recording kxray's own calls, best of several short runs (about a third of a second, a tenth with
 * @entries_only: then return_ns and cold_ns are 0).
 * Errors: those of kx_tracer_new and kx_doctor_costs.
 */
int kx_call_costs_measure(enum kx_mechanism mechanism, bool entries_only, struct kx_call_costs *out,
			  struct kx_err *err);

/*
 * The same in two steps, of which the first takes most of the time and may run beside other work. The second measures by what
 * the first has loaded, and frees it.
 */
struct kx_tracer;
int kx_call_costs_prepare(enum kx_mechanism mechanism, struct kx_tracer **out, struct kx_err *err);
int kx_call_costs_measure_by(struct kx_tracer *t, bool entries_only, struct kx_call_costs *out, struct kx_err *err);

/* What a traced system call takes of the target's CPU time, ns. */
struct kx_syscall_costs {
	double recorded_ns, counted_ns; /* with a budget, if it is recorded and if it is only counted */
};

/*
 * The same for system calls alone; a few ms, and what the kernel needs to load the programs. Errors: also -EIO, if what was
 * measured cannot be true. @out is then left as it is.
 */
int kx_syscall_costs_measure(enum kx_mechanism mechanism, struct kx_syscall_costs *out, struct kx_err *err);

/*
 * What it costs in ns of CPU time to record a call of a function planned like that, and to write it.
 * Negative if that is not known: calls in the kernel.
 */
double kx_call_cost(const struct kx_call_costs *costs, const struct kx_plan *plan);
/*
 * What such a call takes more if calls come so many seconds after each other, on average: what runs in between uses the
 * caches.
 */
double kx_call_cost_cold(const struct kx_call_costs *costs, const struct kx_plan *plan, double pause);
double kx_call_cost_syscall(const struct kx_call_costs *costs);

#endif
