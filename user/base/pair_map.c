// SPDX-License-Identifier: BSD-2-Clause
#include "base/pair_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct kx_pair *find(struct kx_pair *places, size_t n, uint32_t a, uint32_t b)
{
	uint64_t h = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15ull;
	size_t at = (size_t)(h ^ h >> 32) & (n - 1);

	while (places[at].value && (places[at].a != a || places[at].b != b))
		at = (at + 1) & (n - 1);
	return &places[at];
}

static int grow(struct kx_pair_map *m)
{
	size_t n = m->nplaces ? m->nplaces * 2 : 64;
	struct kx_pair *places = calloc(n, sizeof(*places));

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < m->nplaces; i++)
		if (m->places[i].value)
			*find(places, n, m->places[i].a, m->places[i].b) = m->places[i];
	free(m->places);
	m->places = places;
	m->nplaces = n;
	return 0;
}

static int grow_direct(struct kx_pair_map *m, uint32_t b)
{
	size_t n = m->ndirect ? m->ndirect : 64;
	uint32_t *direct;

	while (n <= b)
		n *= 2;
	direct = reallocarray(m->direct, n, sizeof(*direct));
	if (!direct)
		return -ENOMEM;
	memset(direct + m->ndirect, 0, (n - m->ndirect) * sizeof(*direct));
	m->direct = direct;
	m->ndirect = n;
	return 0;
}

static int direct_index(struct kx_pair_map *m, uint32_t b, uint32_t *index)
{
	if (b >= m->ndirect && grow_direct(m, b))
		return -ENOMEM;
	if (m->direct[b]) {
		*index = m->direct[b] - 1;
		return 0;
	}
	*index = (uint32_t)m->count++;
	m->direct[b] = *index + 1;
	return 1;
}

int kx_pair_index(struct kx_pair_map *m, uint32_t a, uint32_t b, uint32_t *index)
{
	struct kx_pair *p;

	if (m->count >= UINT32_MAX - 1)
		return -ENOMEM;
	if (!a && b < KX_PAIR_DIRECT)
		return direct_index(m, b, index);
	if (m->nplaced * 2 >= m->nplaces && grow(m))
		return -ENOMEM;
	p = find(m->places, m->nplaces, a, b);
	if (p->value) {
		*index = p->value - 1;
		return 0;
	}
	*index = (uint32_t)m->count++;
	m->nplaced++;
	*p = (struct kx_pair){ a, b, *index + 1 };
	return 1;
}

void kx_pair_map_free(struct kx_pair_map *m)
{
	free(m->direct);
	free(m->places);
	memset(m, 0, sizeof(*m));
}
