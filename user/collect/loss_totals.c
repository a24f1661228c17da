// SPDX-License-Identifier: BSD-2-Clause
#include "collect/loss_totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "collect/target_losses.h"

int kx_loss_totals_put(struct kx_loss_totals *t, enum kx_loss_source source, uint32_t tid,
		       const struct kx_thread_loss *loss, struct kx_loss_sum *out)
{
	struct kx_loss_of_thread *thread;
	uint64_t *entries, *exits;
	uint32_t index;
	int is_new;

	if (KX_ARRAY_RESERVE(t->items, t->room, t->threads.count))
		return -ENOMEM;
	is_new = kx_pair_index(&t->threads, tid, 0, &index);
	if (is_new < 0)
		return -ENOMEM;
	thread = &t->items[index];
	if (is_new)
		memset(thread, 0, sizeof(*thread));
	entries = &thread->entries[source];
	exits = &thread->exits[source];
	out->hidden = loss->first_total > *entries + *exits;
	if (source == KX_LOSSES_OF_TARGET) {
		*entries = kx_target_loss_total(loss->entries, *entries);
		*exits = kx_target_loss_total(loss->exits, *exits);
	} else {
		*entries = loss->entries;
		*exits = loss->exits;
	}
	out->entries = thread->entries[0] + thread->entries[1];
	out->exits = thread->exits[0] + thread->exits[1];
	return 0;
}

void kx_loss_totals_free(struct kx_loss_totals *t)
{
	kx_pair_map_free(&t->threads);
	free(t->items);
	memset(t, 0, sizeof(*t));
}
