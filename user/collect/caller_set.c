// SPDX-License-Identifier: BSD-2-Clause
#include "collect/caller_set.h"

#include <stdbool.h>
#include <stdlib.h>

#define LEAST_PLACES 1024u

static size_t hash(int32_t pid, uint64_t address)
{
	return (size_t)((address ^ (uint64_t)(uint32_t)pid << 40) * 0x9e3779b97f4a7c15u >> 32);
}

/* The place of this address, or the free one where it belongs. */
static struct kx_caller *find(const struct kx_caller_set *set, int32_t pid, uint64_t address)
{
	for (size_t i = hash(pid, address);; i++) {
		struct kx_caller *c = &set->places[i & (set->nplaces - 1)];

		if (!c->address || (c->address == address && c->pid == pid))
			return c;
	}
}

static bool grow(struct kx_caller_set *set)
{
	struct kx_caller_set larger = { .nplaces = set->nplaces ? set->nplaces * 2 : LEAST_PLACES, .count = set->count };

	larger.places = calloc(larger.nplaces, sizeof(*larger.places));
	if (!larger.places)
		return false;
	for (size_t i = 0; i < set->nplaces; i++)
		if (set->places[i].address)
			*find(&larger, set->places[i].pid, set->places[i].address) = set->places[i];
	free(set->places);
	*set = larger;
	return true;
}

void kx_caller_set_add(struct kx_caller_set *set, int32_t pid, uint64_t address)
{
	struct kx_caller *c;

	if (!address)
		return;
	c = set->nplaces ? find(set, pid, address) : NULL;
	if (c && c->address)
		return;
	if (set->count >= KX_MAX_CALLERS || (set->count >= set->nplaces / 2 && !grow(set)))
		return;
	*find(set, pid, address) = (struct kx_caller){ address, pid };
	set->count++;
}

void kx_caller_set_free(struct kx_caller_set *set)
{
	free(set->places);
	*set = (struct kx_caller_set){ 0 };
}
