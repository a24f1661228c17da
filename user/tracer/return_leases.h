// SPDX-License-Identifier: BSD-2-Clause
/*
 * Return probes that keep others from removing theirs (bpf/lease.bpf.h says how). Whoever removes a uprobe, of any program, waits for the traced
 * threads' leases: another tool that is asked to end, and the keeper when it takes probes out while others stay.
 *
 * A thread of its own, since the recorder may wait for the keeper. Once a second it looks whether a traced thread holds a lease, then whether
 * anybody waits. If the same call holds its lease and the same task waits for half a second, the calls of that thread are recorded without
 * their exits until its leases have ended, some 0.15 s later. That it is the same call, the programs see: others begin inside of it only.
 *
 * Cost: a look at the threads of the traced process takes 0.1 ms; if one of them holds a lease, one at all threads of the machine follows.
 */
#ifndef KX_RETURN_LEASES_H
#define KX_RETURN_LEASES_H

#include <stdint.h>

#include "tracer/tracer.h"

struct kx_return_leases;

/* For how long how many threads' calls were recorded without their exits, so that others could remove their probes. */
struct kx_return_gaps {
	unsigned threads; /* one that had two gaps counts twice */
	uint64_t ns;	  /* all gaps together */
};

/*
 * Begins to look. To be stopped before the tracer is freed. NULL: there is nothing to look for (return probes are not sessions), or neither memory nor a
 * thread for it.
 */
struct kx_return_leases *kx_return_leases_start(struct kx_tracer *tracer);
/* NULL is fine; then there were no gaps. */
void kx_return_leases_stop(struct kx_return_leases *l, struct kx_return_gaps *gaps);

#endif
