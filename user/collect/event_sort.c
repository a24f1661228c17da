// SPDX-License-Identifier: BSD-2-Clause
#include "collect/event_sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Each run on the stack is more than twice as long as the next: 32 are enough for 2^32 events. */
#define MAX_RUNS 33
/* More memory than this, in events, is not kept: about 8 MiB. */
#define MAX_KEPT ((8u << 20) / sizeof(struct kx_event))

struct run {
	uint32_t at, n;
};

static int reserve(struct kx_event_sort *s, size_t n)
{
	struct kx_event *more;

	if (n <= s->room)
		return 0;
	more = malloc(n * sizeof(*more));
	if (!more)
		return -ENOMEM;
	free(s->spare);
	s->spare = more;
	s->room = n;
	return 0;
}

void kx_event_sort_free(struct kx_event_sort *s)
{
	free(s->spare);
	memset(s, 0, sizeof(*s));
}

/* The first of @n events in order that is later than @tsc, or as late if @or_same. */
static uint32_t first_later(const struct kx_event *events, uint32_t n, uint64_t tsc, bool or_same)
{
	uint32_t low = 0;

	while (n) {
		uint32_t half = n / 2, at = low + half;

		if (events[at].tsc > tsc || (or_same && events[at].tsc == tsc)) {
			n = half;
		} else {
			low = at + 1;
			n -= half + 1;
		}
	}
	return low;
}

/* Merges two runs, one behind the other. */
static int merge(struct kx_event_sort *s, struct kx_event *events, const struct run *left, const struct run *right)
{
	struct kx_event *second = events + right->at, *out, *first;
	/* what is in its place already */
	uint32_t skip = first_later(events + left->at, left->n, second->tsc, false), n = left->n - skip, i = 0, k = 0, m;

	if (!n)
		return 0;
	if (reserve(s, n))
		return -ENOMEM;
	m = first_later(second, right->n, second[-1].tsc, true);
	out = events + left->at + skip;
	first = s->spare;
	memcpy(first, out, n * sizeof(*first));
	while (i < n && k < m)
		*out++ = second[k].tsc < first[i].tsc ? second[k++] : first[i++];
	memcpy(out, first + i, (n - i) * sizeof(*first));
	return 0;
}

static int merge_last(struct kx_event_sort *s, struct kx_event *events, struct run *runs, unsigned *nruns)
{
	int code = merge(s, events, &runs[*nruns - 2], &runs[*nruns - 1]);

	runs[*nruns - 2].n += runs[*nruns - 1].n;
	--*nruns;
	return code;
}

int kx_event_sort(struct kx_event_sort *s, struct kx_event *events, uint32_t n)
{
	struct run runs[MAX_RUNS];
	unsigned nruns = 0;
	int code = 0;

	for (uint32_t at = 0; at < n && !code;) {
		uint32_t end = at + 1;

		while (end < n && events[end - 1].tsc <= events[end].tsc)
			end++;
		runs[nruns++] = (struct run){ at, end - at };
		at = end;
		while (nruns > 1 && runs[nruns - 2].n / 2 <= runs[nruns - 1].n && !code)
			code = merge_last(s, events, runs, &nruns);
	}
	while (nruns > 1 && !code)
		code = merge_last(s, events, runs, &nruns);
	if (s->room > MAX_KEPT)
		kx_event_sort_free(s);
	return code;
}
