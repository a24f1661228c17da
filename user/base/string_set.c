// SPDX-License-Identifier: BSD-2-Clause
#include "base/string_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a */
static uint32_t hash_of(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return h;
}

static struct kx_string_place *find(const struct kx_string_set *set, const char *text,
				    uint32_t hash)
{
	size_t at = hash & (set->nplaces - 1);

	while (set->places[at].text &&
	       (set->places[at].hash != hash || strcmp(set->places[at].text, text)))
		at = (at + 1) & (set->nplaces - 1);
	return &set->places[at];
}

static int grow(struct kx_string_set *set)
{
	struct kx_string_set larger = { .nplaces = set->nplaces ? set->nplaces * 2 : 64,
					.count = set->count };

	larger.places = calloc(larger.nplaces, sizeof(*larger.places));
	if (!larger.places)
		return -ENOMEM;
	for (size_t i = 0; i < set->nplaces; i++) {
		const struct kx_string_place *p = &set->places[i];
		size_t at = p->hash & (larger.nplaces - 1);

		if (!p->text)
			continue;
		/* all are different: no need to compare them */
		while (larger.places[at].text)
			at = (at + 1) & (larger.nplaces - 1);
		larger.places[at] = *p;
	}
	free(set->places);
	*set = larger;
	return 0;
}

int kx_string_set_add(struct kx_string_set *set, const char *text)
{
	uint32_t hash = hash_of(text);
	struct kx_string_place *p;

	if (set->count * 2 >= set->nplaces && grow(set))
		return -ENOMEM;
	p = find(set, text, hash);
	if (!p->text) {
		p->text = text;
		p->hash = hash;
		set->count++;
	}
	p->times++;
	return 0;
}

uint32_t kx_string_set_times(const struct kx_string_set *set, const char *text)
{
	return set->count ? find(set, text, hash_of(text))->times : 0;
}

void kx_string_set_free(struct kx_string_set *set)
{
	free(set->places);
	memset(set, 0, sizeof(*set));
}
