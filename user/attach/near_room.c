// SPDX-License-Identifier: BSD-2-Clause
#include "attach/near_room.h"

#include <string.h>

#include "binary/mappings.h"

/* What vm.mmap_min_addr is at most, by default. */
#define LOWEST 0x10000
/* Below a stack that grows, and above the heap. */
#define STACK_ROOM (256ul << 20)
/* A little less than what 32 bits with a sign reach. */
#define REACH 0x7f000000ul
#define PAGE 4096ul

struct search {
	uint64_t from, to;
	size_t size;
	uint64_t end; /* of the mapping before */
	uint64_t best, distance;
};

/* Also other memory may be a stack that the kernel grows (MAP_GROWSDOWN), which /proc/PID/maps does not say. */
static bool may_grow_down(const struct kx_mapping *m)
{
	return !strcmp(m->path, "[stack]") || (!*m->path && m->writable && !m->shared);
}

static uint64_t lower_end(const struct kx_mapping *m)
{
	if (!may_grow_down(m))
		return m->start;
	return m->start > STACK_ROOM ? m->start - STACK_ROOM : 0;
}

static int look(void *ctx, const struct kx_mapping *m)
{
	struct search *s = ctx;
	const uint64_t end = lower_end(m) & ~(PAGE - 1), at = end - s->size;

	if (end >= s->size && at >= s->end && at < end) {
		const uint64_t low = at < s->from ? at : s->from, high = end > s->to ? end : s->to;

		if (high - low < s->distance) {
			s->best = at;
			s->distance = high - low;
		}
	}
	s->end = m->end + (strcmp(m->path, "[heap]") ? 0 : STACK_ROOM);
	return 0;
}

uint64_t kx_near_room(pid_t pid, uint64_t from, uint64_t to, size_t size)
{
	struct search s = { .from = from, .to = to, .size = size, .end = LOWEST, .distance = REACH };

	return kx_mappings_each(pid, look, &s) ? 0 : s.best;
}

static int overlaps(void *ctx, const struct kx_mapping *m)
{
	struct search *s = ctx;
	/* it grows as far as to the mapping before */
	const uint64_t low = lower_end(m) > s->end ? lower_end(m) : s->end;

	s->end = m->end;
	return (low < m->start ? low : m->start) < s->to && m->end > s->from;
}

bool kx_room_is_free(pid_t pid, uint64_t at, size_t size)
{
	struct search s = { .from = at, .to = at + size };

	return at >= LOWEST && s.to > at && kx_mappings_each(pid, overlaps, &s) == 0;
}
