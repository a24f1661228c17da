// SPDX-License-Identifier: BSD-2-Clause
/*
 * What each thread has lost, as running totals: those of the BPF programs and those of a process that records itself, and both together, which is what
 * becomes gaps of the thread.
 */
#ifndef KX_LOSS_TOTALS_H
#define KX_LOSS_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pair_map.h"
#include "bpf/wire.h"

enum kx_loss_source {
	KX_LOSSES_OF_KERNEL = 0,
	KX_LOSSES_OF_TARGET = 1, /* not trusted */
	KX_LOSS_SOURCES
};

/* All zero: empty. Private. */
struct kx_loss_totals {
	struct kx_pair_map threads;
	struct kx_loss_of_thread {
		uint64_t entries[KX_LOSS_SOURCES], exits[KX_LOSS_SOURCES];
	} *items; /* by index in threads */
	size_t room;
};

struct kx_loss_sum {
	uint64_t entries, exits; /* of all sources */
	bool hidden; /* @loss hides the time of an older one that was not read */
};

/* The totals of thread @tid in @source are now those of @loss. Errors: -ENOMEM. */
int kx_loss_totals_put(struct kx_loss_totals *t, enum kx_loss_source source, uint32_t tid,
		       const struct kx_thread_loss *loss, struct kx_loss_sum *out);
void kx_loss_totals_free(struct kx_loss_totals *t);

#endif
