// SPDX-License-Identifier: BSD-2-Clause
#include "collect/tracer_input.h"

#include <time.h>

static uint64_t now(void *ctx)
{
	(void)ctx;
	return kx_tsc_read();
}

static void wait_a_little(void *ctx)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	(void)ctx;
	nanosleep(&ms, NULL);
}

static void losses(void *ctx, uint64_t calls[KX_LOSS_REASONS], uint64_t other[KX_LOSS_REASONS])
{
	kx_tracer_losses(ctx, calls, other);
}

static void thread_losses(void *ctx, kx_thread_loss_fn *each, void *each_ctx)
{
	kx_tracer_thread_losses(ctx, each, each_ctx);
}

static void reduced(void *ctx, uint64_t *calls, uint64_t *too_deep)
{
	kx_tracer_reduced(ctx, calls, too_deep);
}

static bool target_runs(void *ctx, bool wake)
{
	return kx_tracer_process_runs(ctx, wake);
}

static void conditions(void *ctx, uint64_t counts[KX_CONDITION_COUNTS])
{
	kx_tracer_condition_counts(ctx, counts);
}

struct kx_collector_input kx_tracer_input(struct kx_tracer *t)
{
	return (struct kx_collector_input){ .rings = kx_tracer_rings(t),
					    .clock = kx_tracer_clock(t),
					    .delayed = kx_tracer_delays_entries(t),
					    .now = now,
					    .wait = wait_a_little,
					    .losses = losses,
					    .thread_losses = thread_losses,
					    .reduced = reduced,
					    .target_runs = target_runs,
					    .conditions = conditions,
					    .ctx = t };
}
