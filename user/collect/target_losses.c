// SPDX-License-Identifier: BSD-2-Clause
#include "collect/target_losses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int kx_target_losses_init(struct kx_target_losses *l, const struct kx_target_input *in)
{
	memset(l, 0, sizeof(*l));
	l->in = *in;
	l->epoch = in->memory->epoch;
	l->rings = calloc((size_t)in->rings->ncpus * KX_LOSS_REASONS, sizeof(*l->rings));
	return l->rings ? 0 : -ENOMEM;
}

void kx_target_losses_free(struct kx_target_losses *l)
{
	free(l->rings);
	l->rings = NULL;
}

static uint64_t load(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

void kx_target_losses_add(struct kx_target_losses *l, uint64_t calls[KX_LOSS_REASONS])
{
	for (unsigned cpu = 0; cpu < l->in.rings->ncpus; cpu++) {
		const struct kx_ring_header *h = l->in.rings->items[cpu].header;
		uint64_t *before = l->rings + (size_t)cpu * KX_LOSS_REASONS;

		for (int i = 0; h && i < KX_LOSS_REASONS; i++) {
			before[i] = kx_target_loss_total(load((const uint64_t *)&h->lost[i]), before[i]);
			calls[i] += before[i];
		}
	}
	l->no_cpu = kx_target_loss_total(load(&l->in.memory->lost_no_cpu), l->no_cpu);
	calls[KX_LOSS_NO_RING] += l->no_cpu;
}

void kx_target_losses_threads(struct kx_target_losses *l,
			      void (*each)(void *ctx, uint32_t tid, const struct kx_thread_loss *loss), void *ctx)
{
	/* Before reading, so that a loss meanwhile starts a new gap. */
	__atomic_store_n(&l->in.memory->epoch, ++l->epoch, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < KX_TARGET_LOSSES; i++) {
		const struct kx_target_loss *from = &l->in.memory->losses[i];
		const uint32_t tid = __atomic_load_n(&from->tid, __ATOMIC_ACQUIRE);
		struct kx_thread_loss loss;

		if (!tid)
			continue;
		/* the counts first, which the writer advances last; first_clock before first_total: see struct kx_thread_loss */
		loss.entries = load(&from->entries);
		loss.exits = load(&from->exits);
		loss.first_clock = load(&from->first_clock);
		loss.first_total = load(&from->first_total);
		loss.last_clock = load(&from->last_clock);
		loss.last_cpu = __atomic_load_n(&from->cpu, __ATOMIC_RELAXED);
		loss.epoch = 0;
		each(ctx, tid, &loss);
	}
}
