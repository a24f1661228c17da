// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/huge_page.h"

#define FIRST_PLACES 1024
#define AHEAD 16 /* functions */
/* Default memory for histograms, in bytes: the largest of these. */
#define HISTOGRAMS_MIN (8u << 20)
#define HISTOGRAMS_OF_FUNCTION 72
#define HISTOGRAMS_OF_FILE(size) ((size) / 64 < (256u << 20) ? (size) / 64 : (256u << 20))
#define HISTOGRAMS_LEAST (128u << 10) /* the largest histogram must fit */

#define CHUNKS_OF_HUGE (KX_HUGE_PAGE / (KX_REPORT_CHUNK * sizeof(struct kx_report_stat)))

static const unsigned quantiles[3] = { 500, 900, 990 };

static int grow_places(struct kx_report_table *t)
{
	size_t n = t->nplaces ? t->nplaces * 2 : FIRST_PLACES;
	struct kx_report_place *places = calloc(n, sizeof(*places));

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < t->nplaces; i++)
		if (t->places[i].slot)
			*kx_report_place_of(places, n, t->places[i].func) = t->places[i];
	free(t->places);
	t->places = places;
	t->nplaces = n;
	return 0;
}

static int grow_direct(struct kx_report_table *t, uint32_t func)
{
	size_t n = t->ndirect ? t->ndirect : FIRST_PLACES;
	uint32_t *direct;

	while (n <= func)
		n *= 2;
	direct = reallocarray(t->direct, n, sizeof(*direct));
	if (!direct)
		return -ENOMEM;
	memset(direct + t->ndirect, 0, (n - t->ndirect) * sizeof(*direct));
	t->direct = direct;
	t->ndirect = n;
	return 0;
}

static size_t histogram_limit(size_t wanted, uint64_t file_size)
{
	if (wanted)
		return wanted > HISTOGRAMS_LEAST ? wanted : HISTOGRAMS_LEAST;
	return HISTOGRAMS_OF_FILE(file_size) > HISTOGRAMS_MIN ? HISTOGRAMS_OF_FILE(file_size) :
								HISTOGRAMS_MIN;
}

int kx_report_table_init(struct kx_report_table *t, size_t histogram_bytes, uint64_t file_size)
{
	t->fixed_limit = histogram_bytes;
	t->pool.limit = histogram_limit(histogram_bytes, file_size);
	return grow_places(t);
}

void kx_report_table_free(struct kx_report_table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		struct kx_report_stat *s = kx_report_stat_at(t, (uint32_t)i);

		if (s->progress != KX_REPORT_DONE)
			kx_histogram_free(&s->histogram, &t->pool);
	}
	kx_histogram_pool_free(&t->pool);
	for (size_t i = 0; i < t->nchunks; i++)
		if (i < CHUNKS_OF_HUGE || i % CHUNKS_OF_HUGE == 0)
			free(t->chunks[i]);
	free(t->chunks);
	free(t->unmeasured);
	free(t->direct);
	free(t->places);
	memset(t, 0, sizeof(*t));
}

/*
 * The first chunks are small pages, so that a report on few functions stays small. From then on some share a huge page, since
 * calls come in any order.
 */
static struct kx_report_stat *new_chunk(struct kx_report_table *t)
{
	const size_t bytes = KX_REPORT_CHUNK * sizeof(struct kx_report_stat);
	size_t part = t->nchunks % CHUNKS_OF_HUGE;

	if (t->nchunks < CHUNKS_OF_HUGE)
		return aligned_alloc(64, bytes);
	if (part)
		return t->chunks[t->nchunks - part] + part * KX_REPORT_CHUNK;
	return kx_huge_page_alloc();
}

static int add_chunk(struct kx_report_table *t)
{
	struct kx_report_stat **chunks = reallocarray(t->chunks, t->nchunks + 1, sizeof(*chunks));

	if (!chunks)
		return -ENOMEM;
	t->chunks = chunks;
	chunks[t->nchunks] = new_chunk(t);
	if (!chunks[t->nchunks])
		return -ENOMEM;
	t->nchunks++;
	return 0;
}

int kx_report_table_add_function(struct kx_report_table *t, uint32_t func, uint32_t *slot)
{
	struct kx_report_place *place;
	bool direct = func < KX_REPORT_DIRECT;

	if (t->count >= INT32_MAX)
		return -ENOMEM;
	if (direct && func >= t->ndirect && grow_direct(t, func))
		return -ENOMEM;
	if (!direct && t->nplaced * 2 >= t->nplaces && grow_places(t))
		return -ENOMEM;
	if (t->count == t->nchunks * KX_REPORT_CHUNK && add_chunk(t))
		return -ENOMEM;
	*slot = (uint32_t)t->count++;
	*kx_report_stat_at(t, *slot) = (struct kx_report_stat){ .func = func, .min = UINT64_MAX };
	if (direct) {
		t->direct[func] = *slot + 1;
	} else {
		place = kx_report_place_of(t->places, t->nplaces, func);
		place->func = func;
		place->slot = *slot + 1;
		t->nplaced++;
	}
	if (!t->fixed_limit && t->count * HISTOGRAMS_OF_FUNCTION > t->pool.limit)
		t->pool.limit = t->count * HISTOGRAMS_OF_FUNCTION;
	return 0;
}

int kx_report_table_defer(struct kx_report_table *t, struct kx_report_stat *s, int r)
{
	if (r != -ENOSPC)
		return r;
	/* Its memory is given to the others; a later pass records it from the beginning. */
	kx_histogram_free(&s->histogram, &t->pool);
	s->progress = KX_REPORT_DEFERRED;
	return 0;
}

int kx_report_table_add_unmeasured(struct kx_report_table *t, uint32_t slot)
{
	size_t room = t->unmeasured_room ? t->unmeasured_room : 64;
	uint64_t *counts;

	if (t->later_pass)
		return 0;
	if (slot >= t->unmeasured_room) {
		while (room <= slot)
			room *= 2;
		counts = reallocarray(t->unmeasured, room, sizeof(*counts));
		if (!counts)
			return -ENOMEM;
		memset(counts + t->unmeasured_room, 0,
		       (room - t->unmeasured_room) * sizeof(*counts));
		t->unmeasured = counts;
		t->unmeasured_room = room;
	}
	t->unmeasured[slot]++;
	kx_report_stat_at(t, slot)->count++;
	return 0;
}

static int end_recorded(struct kx_report_table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		struct kx_report_stat *s = kx_report_stat_at(t, (uint32_t)i);
		uint16_t codes[3] = { KX_HISTOGRAM_MIN, KX_HISTOGRAM_MIN, KX_HISTOGRAM_MIN };
		size_t ahead = i + AHEAD < t->count ? i + AHEAD : i;
		int r;

		/* with the percentiles of those that are done in place of the address, it is not used */
		__builtin_prefetch(kx_report_stat_at(t, (uint32_t)ahead)->histogram.data);
		if (s->progress != KX_REPORT_RECORDING)
			continue;
		r = kx_histogram_quantiles(&s->histogram, quantiles, 3, codes);
		if (r && r != -ENODATA)
			return r;
		kx_histogram_free(&s->histogram, &t->pool);
		memcpy(s->codes, codes, sizeof(codes));
		s->progress = KX_REPORT_DONE;
	}
	return 0;
}

static int begin_deferred(struct kx_report_table *t)
{
	int more = 0, r;

	for (size_t i = 0; i < t->count; i++) {
		struct kx_report_stat *s = kx_report_stat_at(t, (uint32_t)i);

		if (s->progress != KX_REPORT_DEFERRED)
			continue;
		more = 1;
		r = kx_histogram_reserve(&s->histogram,
					 s->count - kx_report_table_unmeasured(t, (uint32_t)i),
					 &t->pool);
		if (r == -ENOMEM)
			return r;
		if (!r)
			s->progress = KX_REPORT_RECORDING;
	}
	return more;
}

/* Functions are found by slots alone from now on; printing needs other memory. */
static void forget_ids(struct kx_report_table *t)
{
	free(t->direct);
	free(t->places);
	t->direct = NULL;
	t->places = NULL;
	t->ndirect = t->nplaces = t->nplaced = 0;
}

int kx_report_table_end_pass(struct kx_report_table *t)
{
	int r = end_recorded(t);

	t->later_pass = true;
	kx_histogram_pool_free(&t->pool);
	if (!r)
		r = begin_deferred(t);
	if (!r)
		forget_ids(t);
	return r;
}
