// SPDX-License-Identifier: BSD-2-Clause
#include "binary/file_cache.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 4096u /* a power of two */

struct kx_file_cache {
	struct kx_file_facts *slots[SLOTS];
};

struct kx_file_cache *kx_file_cache_new(void)
{
	return calloc(1, sizeof(struct kx_file_cache));
}

void kx_file_cache_free(struct kx_file_cache *cache)
{
	if (!cache)
		return;
	for (unsigned i = 0; i < SLOTS; i++)
		free(cache->slots[i]);
	free(cache);
}

static unsigned slot_of(uint64_t device, uint64_t inode)
{
	return (unsigned)(((inode ^ device << 17) * 0x9e3779b97f4a7c15ULL) >> 52) & (SLOTS - 1);
}

struct kx_file_facts *kx_file_cache_get(struct kx_file_cache *cache, uint64_t device,
					uint64_t inode, uint64_t changed, const char *name)
{
	struct kx_file_facts **slot, *facts;

	if (!cache || strlen(name) >= sizeof(facts->name))
		return NULL;
	slot = &cache->slots[slot_of(device, inode)];
	if (!*slot)
		*slot = calloc(1, sizeof(**slot));
	facts = *slot;
	if (!facts || (facts->device == device && facts->inode == inode &&
		       facts->changed == changed && !strcmp(facts->name, name)))
		return facts;
	memset(facts, 0, sizeof(*facts));
	facts->device = device;
	facts->inode = inode;
	facts->changed = changed;
	strcpy(facts->name, name);
	return facts;
}
