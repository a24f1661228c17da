// SPDX-License-Identifier: BSD-2-Clause
#include "plan/restartable.h"

#include <string.h>

#include "base/byte_find.h"

static const uint8_t signature[4] = { 0x53, 0x30, 0x05, 0x53 };

/* ud1 SIGNATURE(%rip), %edi: RSEQ_ASM_DEFINE_ABORT of librseq and glibc's sys/rseq.h; nopl SIGNATURE(%rip): tcmalloc */
static const uint8_t carriers[][3] = { { 0x0f, 0xb9, 0x3d }, { 0x0f, 0x1f, 0x05 } };

static bool is_carried(const uint8_t *at, const uint8_t *start)
{
	for (size_t i = 0; i < sizeof(carriers) / sizeof(carriers[0]); i++)
		if (at - start >= 3 && !memcmp(at - 3, carriers[i], 3))
			return true;
	return false;
}

static bool found_in(const struct kx_landing_map *m, const struct kx_landing_segment *s)
{
	const uint8_t *at = s->bytes, *end = s->bytes + s->size;

	while ((at = kx_byte_find(at, (size_t)(end - at), signature, sizeof(signature)))) {
		const uint64_t behind = s->addr + (uint64_t)(at - s->bytes) + sizeof(signature);

		if (is_carried(at, s->bytes) || kx_landing_is_marked(m, behind))
			return true;
		at++;
	}
	return false;
}

bool kx_restartable_found(const struct kx_landing_map *m)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->segments[i].executable && found_in(m, &m->segments[i]))
			return true;
	return false;
}
