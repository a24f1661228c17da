// SPDX-License-Identifier: BSD-2-Clause
/*
 * The losses that a traced process counts itself (--in-process). As with its records, nothing is trusted: a total that falls, or grows by more
 * than KX_TARGET_LOSS_MOST between two passes, stays what it was.
 */
#ifndef KX_TARGET_LOSSES_H
#define KX_TARGET_LOSSES_H

#include <stdint.h>

#include "bpf/wire.h"
#include "collect/target_reader.h"

#define KX_TARGET_LOSS_MOST (1ull << 40)

/* Private. */
struct kx_target_losses {
	struct kx_target_input in;
	uint64_t *rings; /* KX_LOSS_REASONS totals of each ring, as last read */
	uint64_t no_cpu;
	uint32_t epoch;
};

/* Errors: -ENOMEM. */
int kx_target_losses_init(struct kx_target_losses *l, const struct kx_target_input *in);
void kx_target_losses_free(struct kx_target_losses *l);

/* Adds the running totals of lost calls by reason to @calls. */
void kx_target_losses_add(struct kx_target_losses *l, uint64_t calls[KX_LOSS_REASONS]);
/* Calls @each with the running totals of every thread that has lost calls; clocks are TSC. @tid and all values may be anything. */
void kx_target_losses_threads(struct kx_target_losses *l,
			      void (*each)(void *ctx, uint32_t tid, const struct kx_thread_loss *loss), void *ctx);

/* Of a total that was @before: @read if that can be. */
static inline uint64_t kx_target_loss_total(uint64_t read, uint64_t before)
{
	return read - before <= KX_TARGET_LOSS_MOST ? read : before;
}

#endif
