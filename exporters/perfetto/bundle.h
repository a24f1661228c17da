// SPDX-License-Identifier: BSD-2-Clause
/*
 * One CPU's scheduler events as Perfetto takes them from the kernel's ftrace: FtraceEventBundle,
 * with the switches and most wake-ups in CompactSched's lists. A bundle of up to KX_PF_BUNDLE
 * events is written at once.
 */
#ifndef KX_PERFETTO_BUNDLE_H
#define KX_PERFETTO_BUNDLE_H

#include "exporters/perfetto/packets.h"

#define KX_PF_BUNDLE   512   /* events */
#define KX_PF_MAX_CPUS 1024u /* trace_processor refuses a whole trace with a higher number */

/* The kernel's priorities are 0 to 139, and -1 for deadlines; a recording does not have them. */
#define KX_PF_NO_PRIORITY 140

struct kx_pf_task {
	int32_t tid;
	const char *name; /* valid until the bundle is written */
};

struct kx_pf_waking {
	struct kx_pf_task task;
	uint16_t target_cpu;
	bool in_interrupt;
};

/* Packed lists that are being filled; all zero: empty. */
struct kx_pf_bundle {
	struct kx_bytes switches[5],
		wakings[6]; /* in the order of the fields' numbers, without the names */
	struct kx_bytes events;
	const char *names[KX_PF_BUNDLE];
	unsigned nnames, nevents;
	uint64_t last_switch, last_waking; /* ns */
};

void kx_pf_bundle_free(struct kx_pf_bundle *b);
bool kx_pf_bundle_is_full(const struct kx_pf_bundle *b);

/* The CPU turns from a thread, which is left in the raw state @state, to @next. Times never go
 * back. */
void kx_pf_bundle_switch(struct kx_pf_bundle *b, uint64_t ns, uint32_t state,
			 const struct kx_pf_task *next);
/* The thread that runs there, or an interrupt, wakes w->task. */
void kx_pf_bundle_waking(struct kx_pf_bundle *b, uint64_t ns, const struct kx_pf_waking *w);
/* Thread @waker does, which runs there as far as only this event says. */
void kx_pf_bundle_woken_by(struct kx_pf_bundle *b, uint64_t ns, int32_t waker,
			   const struct kx_pf_waking *w);

/* Writes what there is as a packet and empties the bundle. Errors: as kx_pf_end. */
int kx_pf_bundle_write(struct kx_pf_bundle *b, struct kx_pf_out *o, uint16_t cpu);

#endif
