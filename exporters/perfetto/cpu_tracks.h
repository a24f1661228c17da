// SPDX-License-Identifier: BSD-2-Clause
/*
 * One track for each CPU, of a trace with scheduler events (record --sched), and arrows from wakers
 * to the threads that they wake.
 *
 * Perfetto knows what ran on a CPU only from the kernel's events: each sched_switch names the
 * thread that runs from then on. A recording has the switches of traced threads only. So:
 *
 * - Where no traced thread is known to run, the CPU runs the made-up thread "not traced" with the
 * id KX_PF_UNTRACED + the CPU's number, which no thread of Linux can have. The CPU may have been
 * idle or have run anything else: "swapper", Perfetto's idle thread, would claim the one, any other
 * thread the other. It also runs for the fraction of a microsecond between the end of one thread
 * and the beginning of the next.
 * - States in which threads leave are as recorded. UNKNOWN, "asleep or blocked", stands where they
 * are not: at a gap in the thread's records, at their end, and for "not traced".
 * - Priorities are not recorded: KX_PF_NO_PRIORITY.
 * - Where a wake-up happened is in recordings of this version. In older ones it is written if the
 * waker is a traced thread that runs then; others are left out, and so is the time runnable in
 * Perfetto's thread states. A thread outside the trace that wakes is named by its id. The waking of
 * a thread that has not yet left a CPU in this trace is left out, too, since Perfetto ignores it.
 */
#ifndef KX_PERFETTO_CPU_TRACKS_H
#define KX_PERFETTO_CPU_TRACKS_H

#include "exporters/common/sched_slices.h"
#include "exporters/perfetto/packets.h"
#include "exporters/perfetto/spool.h"

#define KX_PF_UNTRACED 4194304 /* PID_MAX_LIMIT of include/linux/threads.h: ids are below it */

/* All zero but spool.fd, which is -1, and kernel: empty. */
struct kx_pf_cpu_tracks {
	struct kx_spool spool;
	bool new_kernel; /* Perfetto is told that the kernel is of version 4.14 or later, which
			    numbers states anew */
	struct kx_pf_woken *threads; /* that were walked; by index of the thread */
	size_t nthreads;
};

/* To be called during the walk, thread after thread: as sched_slices.h says, and for its slices
 * that run. */
int kx_pf_cpu_thread(struct kx_pf_cpu_tracks *c, struct kx_pf_out *o,
		     const struct kx_call_thread *t);
int kx_pf_cpu_running(struct kx_pf_cpu_tracks *c, struct kx_pf_out *o,
		      const struct kx_call_thread *t, const struct kx_sched_slice *s);
/* After the slices of @i. */
int kx_pf_cpu_interval(struct kx_pf_cpu_tracks *c, struct kx_pf_out *o,
		       const struct kx_call_thread *t, const struct kx_sched_interval *i);

/* After the walk: writes everything. Errors: those of the output and of a temporary file, -ENOMEM.
 */
int kx_pf_cpu_write(struct kx_pf_cpu_tracks *c, struct kx_pf_out *o);

void kx_pf_cpu_free(struct kx_pf_cpu_tracks *c);

#endif
