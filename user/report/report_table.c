// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/huge_page.h"

#define FIRST_PLACES 1024
#define AHEAD 16 /* functions */
/* Default memory for histograms, in bytes: the larger of these. */
#define HISTOGRAMS_MIN (8u << 20)
#define HISTOGRAMS_OF_FUNCTION 40
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

int kx_report_table_init(struct kx_report_table *t, size_t histogram_bytes)
{
	t->fixed_limit = histogram_bytes;
	t->pool.limit = !histogram_bytes		     ? HISTOGRAMS_MIN :
			histogram_bytes > HISTOGRAMS_LEAST ? histogram_bytes :
							     HISTOGRAMS_LEAST;
	return grow_places(t);
}

void kx_report_table_free(struct kx_report_table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		struct kx_report_stat *s = kx_report_stat_at(t, (uint32_t)i);

		if (s->progress == KX_REPORT_RECORDING)
			kx_histogram_free(&s->histogram, &t->pool);
	}
	free(t->lists);
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

/* Its memory is given to the others; a later pass records it from the beginning. */
static void forget(struct kx_report_table *t, struct kx_report_stat *s)
{
	kx_histogram_free(&s->histogram, &t->pool);
	s->progress = KX_REPORT_DEFERRED;
}

int kx_report_table_defer(struct kx_report_table *t, struct kx_report_stat *s, uint64_t took, int r)
{
	if (r != -ENOSPC)
		return r;
	/* A later pass must not start searches: that histograms which are given up make room for others is what ends it. */
	if (t->later_pass || !kx_histogram_coarsen(&s->histogram, &t->pool)) {
		forget(t, s);
		return 0;
	}
	s->progress = KX_REPORT_COARSE;
	kx_report_table_add_narrowed(t, s, took);
	return 0;
}

void kx_report_table_add_narrowed(struct kx_report_table *t, struct kx_report_stat *s, uint64_t took)
{
	if (s->progress == KX_REPORT_SEARCHING && s->search.list != KX_SEARCH_NO_LIST)
		kx_quantile_search_add(&s->search, t->lists, took);
	else if (s->progress == KX_REPORT_COARSE &&
		 !kx_coarse_add(s->histogram.data, kx_code_of(took, KX_BUCKET_BITS), 1))
		forget(t, s);
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

/* How many durations a function's quantiles are of. */
static uint64_t nvalues(const struct kx_report_table *t, size_t slot)
{
	return kx_report_stat_at(t, (uint32_t)slot)->count - kx_report_table_unmeasured(t, (uint32_t)slot);
}

static void take_codes(struct kx_report_stat *s, const uint16_t codes[3])
{
	memcpy(s->codes, codes, sizeof(s->codes));
	s->progress = KX_REPORT_DONE;
}

/* What there is to search for, in place of the counts of ranges; their memory is freed with the pool. */
static void plan_search(struct kx_report_stat *s)
{
	struct kx_quantile_search search;

	s->progress = kx_quantile_search_plan(&search, s->histogram.data, quantiles) ? KX_REPORT_SEARCHING :
										       KX_REPORT_DEFERRED;
	s->histogram = (struct kx_histogram){ 0 };
	if (s->progress == KX_REPORT_SEARCHING)
		s->search = search;
}

static int end_function(struct kx_report_table *t, struct kx_report_stat *s, size_t slot)
{
	uint16_t codes[3] = { KX_HISTOGRAM_MIN, KX_HISTOGRAM_MIN, KX_HISTOGRAM_MIN };
	int r;

	if (s->progress == KX_REPORT_COARSE) {
		plan_search(s);
	} else if (s->progress == KX_REPORT_SEARCHING && s->search.list != KX_SEARCH_NO_LIST) {
		if (!kx_quantile_search_end(&s->search, t->lists, nvalues(t, slot) > KX_HISTOGRAM_LIST, codes))
			return -EBADMSG;
		take_codes(s, codes);
	} else if (s->progress == KX_REPORT_RECORDING) {
		r = kx_histogram_quantiles(&s->histogram, quantiles, 3, codes);
		if (r && r != -ENODATA)
			return r;
		kx_histogram_free(&s->histogram, &t->pool);
		take_codes(s, codes);
	}
	return 0;
}

static int end_functions(struct kx_report_table *t)
{
	int r = 0;

	for (size_t i = 0; i < t->count && !r; i++) {
		size_t ahead = i + AHEAD < t->count ? i + AHEAD : i;

		/* with the percentiles of those that are done in place of the address, it is not used */
		__builtin_prefetch(kx_report_stat_at(t, (uint32_t)ahead)->histogram.data);
		r = end_function(t, kx_report_stat_at(t, (uint32_t)i), i);
	}
	free(t->lists);
	t->lists = NULL;
	return r;
}

/*
 * Gives as many searches as fit into half the limit, or into all of it where nothing else waits, their lists. 1 if any
 * waits or searches, 0 or -ENOMEM.
 */
static int begin_searches(struct kx_report_table *t, size_t limit)
{
	size_t used = 0, room = limit / sizeof(*t->lists);
	int more = 0;

	for (size_t i = 0; i < t->count; i++) {
		struct kx_report_stat *s = kx_report_stat_at(t, (uint32_t)i);

		if (s->progress != KX_REPORT_SEARCHING)
			continue;
		more = 1;
		s->search.list = KX_SEARCH_NO_LIST;
		if (used + s->search.need + 1u > room || used > UINT32_MAX / 2)
			continue;
		s->search.list = (uint32_t)used;
		used += s->search.need + 1u;
	}
	if (!more)
		return 0;
	t->lists = calloc(used, sizeof(*t->lists)); /* zero: no values yet */
	return t->lists ? 1 : -ENOMEM;
}

static int begin_deferred(struct kx_report_table *t, size_t limit)
{
	int more = 0, r;

	t->pool.limit = limit;
	for (size_t i = 0; i < t->count; i++) {
		struct kx_report_stat *s = kx_report_stat_at(t, (uint32_t)i);

		if (s->progress != KX_REPORT_DEFERRED)
			continue;
		more = 1;
		r = kx_histogram_reserve(&s->histogram, nvalues(t, i), &t->pool);
		if (r == -ENOMEM)
			return r;
		if (!r)
			s->progress = KX_REPORT_RECORDING;
	}
	return more;
}

static bool any_deferred(const struct kx_report_table *t)
{
	for (size_t i = 0; i < t->count; i++)
		if (kx_report_stat_at(t, (uint32_t)i)->progress == KX_REPORT_DEFERRED)
			return true;
	return false;
}

/* 1 if another pass is needed, else 0 or -ENOMEM. */
static int begin_later(struct kx_report_table *t)
{
	size_t limit = t->limit, searches = any_deferred(t) ? limit / 2 : limit;
	int r = begin_searches(t, searches);

	if (r < 0 || searches == limit)
		return r;
	return begin_deferred(t, r ? limit - searches : limit);
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
	int r = end_functions(t);

	if (!t->later_pass)
		t->limit = t->pool.limit;
	t->later_pass = true;
	kx_histogram_pool_free(&t->pool);
	if (!r)
		r = begin_later(t);
	if (!r)
		forget_ids(t);
	return r;
}
