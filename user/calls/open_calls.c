// SPDX-License-Identifier: BSD-2-Clause
#include "calls/open_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 8
#define FIRST_BITS 6

void kx_open_calls_free(struct kx_open_calls *o)
{
	const struct kx_open_calls kept = { .first_bits = o->first_bits, .costs = o->costs, .pid = o->pid };

	if (o->calls)
		free(o->calls - 1);
	free(o->outermost);
	*o = kept;
}

void kx_open_calls_clear(struct kx_open_calls *o)
{
	while (o->depth)
		kx_open_calls_pop(o);
	o->newest = 0;
	o->added = 0;
	o->removed = 0;
	o->hit = 0;
	o->entered = 0;
	o->scale = 0;
}

static int grow_calls(struct kx_open_calls *o)
{
	uint32_t room = o->room ? o->room * 2 : FIRST_ROOM;
	struct kx_open_call *calls;

	/* index + 1 must fit into the set */
	if (room > UINT32_MAX / 2)
		return -ENOMEM;
	calls = reallocarray(o->calls ? o->calls - 1 : NULL, room + 1ul, sizeof(*calls));
	if (!calls)
		return -ENOMEM;
	if (!o->calls)
		memset(calls, 0, sizeof(*calls));
	o->calls = calls + 1;
	o->room = room;
	return 0;
}

/* A larger set, filled in the order of the calls. */
static int grow_set(struct kx_open_calls *o)
{
	unsigned bits = o->outermost ? o->bits + 1u : o->first_bits ? o->first_bits : FIRST_BITS;
	uint32_t *set = bits > 31 ? NULL : calloc(1ul << bits, sizeof(*set));

	if (!set)
		return -ENOMEM;
	free(o->outermost);
	o->outermost = set;
	o->bits = (uint8_t)bits;
	o->most_outermost = 1u << bits >> 2;
	o->noutermost = 0;
	for (uint32_t i = 0; i < o->depth; i++)
		if (o->calls[i].outermost)
			kx_open_calls_add_function(o, i);
	return 0;
}

int kx_open_calls_grow(struct kx_open_calls *o)
{
	int r = o->depth == o->room ? grow_calls(o) : 0;

	if (!r && (!o->outermost || kx_open_calls_are_full(o)))
		r = grow_set(o);
	return r;
}

static bool is_open(const struct kx_open_calls *o, uint32_t func)
{
	uint32_t mask = (1u << o->bits) - 1;

	if (!o->depth)
		return false;
	for (uint32_t at = kx_open_calls_place(o, func); o->outermost[at]; at = (at + 1) & mask)
		if (o->calls[o->outermost[at] - 1].func == func)
			return true;
	return false;
}

uint32_t kx_open_calls_search(const struct kx_open_calls *o, uint32_t func)
{
	uint32_t at = o->depth;

	/* Orphans are found in the set: a deep stack is not searched for each of them. */
	if (!is_open(o, func))
		return 0;
	while (o->calls[at - 1].func != func)
		at--;
	return o->depth - at + 1;
}

void kx_open_calls_raise(const struct kx_open_calls *o, struct kx_call_record *records, size_t n)
{
	for (size_t i = 0; i < n && records[i].tsc < o->newest; i++)
		records[i].tsc = o->newest;
}

const struct kx_probe_cost *kx_open_calls_moved_cost(const struct kx_open_calls *o, const struct kx_call_end *end,
						     uint64_t tsc)
{
	/* later than it was by what probes have taken since: a call during which exits move may be taken for a later one */
	uint64_t entered = tsc - end->took;

	return kx_probe_cost_of_call(o->costs, o->pid, end->call->func, entered);
}
