// SPDX-License-Identifier: BSD-2-Clause
#include "report/histogram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/huge_page.h"

#define FIRST_LIST_ROOM 16 /* then twice as many, at last KX_HISTOGRAM_LIST */
#define BLOCK_SIZE	(256u << 10)
#define FIRST_TABLE_ROOM 128
#define BUCKETS		 ((64 - KX_BUCKET_BITS + 1) << KX_BUCKET_BITS) /* codes of KX_BUCKET_BITS */

/*
 * The table: open addressing, room (a power of two) counts, then as many keys. A count of 0
 * is a free place. A full count makes the same key appear again further on. Each key is its own
 * hash, so that similar durations share cache lines.
 */
static uint32_t *counts_of(void *data)
{
	return data;
}

static uint16_t *keys_of(void *data, uint32_t room)
{
	return (uint16_t *)((uint32_t *)data + room);
}

static size_t bytes_of(uint32_t room)
{
	return room > KX_HISTOGRAM_LIST ? room * 6ul + 16 : room * sizeof(uint16_t);
}

_Static_assert(KX_HISTOGRAM_LIST <= FIRST_LIST_ROOM << (KX_HISTOGRAM_LISTS - 1) &&
		       KX_HISTOGRAM_LIST > FIRST_LIST_ROOM << (KX_HISTOGRAM_LISTS - 2),
	       "each room has a size");
_Static_assert(sizeof(struct kx_coarse) <= FIRST_LIST_ROOM * sizeof(uint16_t), "it takes the place of any list");

static unsigned size_of_list(uint32_t room)
{
	unsigned size = 0;

	while (room > (uint32_t)FIRST_LIST_ROOM << size)
		size++;
	return size;
}

static bool is_table(uint32_t room)
{
	return room > KX_HISTOGRAM_LIST;
}

/* Bytes of the next block. Where there are many lists, huge pages spare a look-up in the table of pages for each value. */
static size_t next_block(const struct kx_histogram_pool *pool)
{
	bool is_huge = pool->held >= 4 * BLOCK_SIZE && pool->held + pool->tables + KX_HUGE_PAGE <= pool->limit;

	return is_huge ? KX_HUGE_PAGE : BLOCK_SIZE;
}

/* Whether the limit allows @more bytes for what shall have @room. The memory that lists gave back is only for lists. */
static bool may_grow(const struct kx_histogram_pool *pool, uint32_t room, size_t more)
{
	unsigned size = is_table(room) ? 0 : size_of_list(room);
	size_t real = pool->held + pool->tables;

	if (!pool->limit)
		return true;
	if (pool->bytes + more > pool->limit)
		return false;
	if (pool->limit < 4 * BLOCK_SIZE) /* less than one block holds */
		return true;
	if (is_table(room))
		return real + more <= pool->limit;
	return pool->unused[size] || (size_t)(pool->end - pool->next) >= FIRST_LIST_ROOM * sizeof(uint16_t) << size ||
	       real + next_block(pool) <= pool->limit;
}

/* Lists are never freed one by one: with malloc they took twice the memory, and a tenth of a report's time. */
static void *new_list(struct kx_histogram_pool *pool, uint32_t room)
{
	unsigned size = size_of_list(room);
	size_t bytes = FIRST_LIST_ROOM * sizeof(uint16_t) << size;
	void *list = pool->unused[size];

	if (list) {
		pool->unused[size] = *(void **)list;
		return list;
	}
	if ((size_t)(pool->end - pool->next) < bytes) {
		size_t block_size = next_block(pool);
		char *block = block_size > BLOCK_SIZE ? kx_huge_page_alloc() : aligned_alloc(64, BLOCK_SIZE);

		if (!block)
			return NULL;
		*(void **)block = pool->blocks;
		pool->blocks = block;
		pool->held += block_size;
		pool->next = block + 64;
		pool->end = block + block_size;
	}
	list = pool->next;
	pool->next += bytes;
	return list;
}

static void *new_table(struct kx_histogram_pool *pool, uint32_t room)
{
	void *table = calloc(room, sizeof(uint32_t) + sizeof(uint16_t));

	if (table)
		pool->tables += bytes_of(room);
	return table;
}

static void free_data(void *data, uint32_t room, struct kx_histogram_pool *pool)
{
	unsigned size;

	if (is_table(room)) {
		free(data);
		pool->tables -= bytes_of(room);
	} else if (data) {
		size = size_of_list(room);
		*(void **)data = pool->unused[size];
		pool->unused[size] = data;
	}
}

void kx_histogram_pool_free(struct kx_histogram_pool *pool)
{
	void *block = pool->blocks, *next;

	for (; block; block = next) {
		next = *(void **)block;
		free(block);
	}
	*pool = (struct kx_histogram_pool){ .limit = pool->limit };
}

static uint32_t place_of(uint32_t key, uint32_t room)
{
	return key & (room - 1);
}

/* Adds @count to @key's place; room for one more key must be there. */
static void table_add(void *data, uint32_t room, uint32_t *used, uint16_t key, uint32_t count)
{
	uint32_t *counts = counts_of(data), at = place_of(key, room);
	uint16_t *keys = keys_of(data, room);

	while (counts[at] && (keys[at] != key || counts[at] > UINT32_MAX - count))
		at = (at + 1) & (room - 1);
	if (!counts[at]) {
		keys[at] = key;
		++*used;
	}
	counts[at] += count;
}

static void fill_table(struct kx_histogram *h, void *data, uint32_t room)
{
	uint32_t used = 0;

	if (h->room <= KX_HISTOGRAM_LIST) {
		for (uint32_t i = 0; i < h->used; i++)
			table_add(data, room, &used, kx_bucket_of_code(((uint16_t *)h->data)[i]), 1);
	} else {
		for (uint32_t i = 0; i < h->room; i++)
			if (counts_of(h->data)[i])
				table_add(data, room, &used, keys_of(h->data, h->room)[i],
					  counts_of(h->data)[i]);
	}
	h->used = used;
}

/* To @room values of a list or places of a table, more than there are. */
static int resize(struct kx_histogram *h, uint32_t room, struct kx_histogram_pool *pool)
{
	size_t more = bytes_of(room) - bytes_of(h->room);
	void *data;

	if (!may_grow(pool, room, more))
		return -ENOSPC;
	data = is_table(room) ? new_table(pool, room) : new_list(pool, room);
	if (!data)
		return -ENOMEM;
	if (is_table(room))
		fill_table(h, data, room);
	else if (h->used)
		memcpy(data, h->data, h->used * sizeof(uint16_t));
	free_data(h->data, h->room, pool);
	h->data = data;
	h->room = room;
	pool->bytes += more;
	return 0;
}

static uint32_t next_room(uint32_t room)
{
	if (!room)
		return FIRST_LIST_ROOM;
	if (room >= KX_HISTOGRAM_LIST)
		return room == KX_HISTOGRAM_LIST ? FIRST_TABLE_ROOM : room * 2;
	return room * 2 < KX_HISTOGRAM_LIST ? room * 2 : KX_HISTOGRAM_LIST;
}

int kx_histogram_reserve(struct kx_histogram *h, uint64_t values, struct kx_histogram_pool *pool)
{
	if (values <= h->room)
		return 0;
	return resize(h, values <= KX_HISTOGRAM_LIST ? (uint32_t)values : FIRST_TABLE_ROOM, pool);
}

int kx_histogram_add_slowly(struct kx_histogram *h, uint64_t value, struct kx_histogram_pool *pool)
{
	uint32_t limit = h->room > KX_HISTOGRAM_LIST ? h->room / 4 * 3 : h->room;
	int r;

	if (h->used >= limit) {
		r = resize(h, next_room(h->room), pool);
		if (r)
			return r;
	}
	if (h->room <= KX_HISTOGRAM_LIST)
		((uint16_t *)h->data)[h->used++] = (uint16_t)kx_code_of(value, KX_CODE_BITS);
	else
		table_add(h->data, h->room, &h->used, (uint16_t)kx_code_of(value, KX_BUCKET_BITS), 1);
	return 0;
}

static void table_quantiles(const struct kx_histogram *h, const unsigned *permille, unsigned n,
			    uint16_t *codes)
{
	uint64_t counts[BUCKETS] = { 0 }, total = 0, below = 0;
	uint16_t at = 0;

	for (uint32_t i = 0; i < h->room; i++)
		if (counts_of(h->data)[i]) {
			counts[keys_of(h->data, h->room)[i]] += counts_of(h->data)[i];
			total += counts_of(h->data)[i];
		}
	for (unsigned i = 0; i < n; i++) {
		uint64_t rank = kx_quantile_rank(total, permille[i]);

		while (below + counts[at] < rank)
			below += counts[at++];
		codes[i] = kx_quantile_code(rank, total, kx_code_of_bucket(at));
	}
}

/* Most values of what is coarsened are expected between these thousandths of the values so far. */
static const unsigned most[2] = { 63, 938 };

static void coarsen_list(struct kx_histogram *h)
{
	uint16_t *codes = h->data;
	struct kx_coarse coarse;

	kx_codes_sort(codes, h->used);
	kx_coarse_init(&coarse, kx_bucket_of_code(codes[kx_quantile_rank(h->used, most[0]) - 1]),
		       kx_bucket_of_code(codes[kx_quantile_rank(h->used, most[1]) - 1]));
	for (uint32_t i = 0; i < h->used; i++)
		kx_coarse_add(&coarse, kx_bucket_of_code(codes[i]), 1);
	*(struct kx_coarse *)h->data = coarse;
}

static bool coarsen_table(struct kx_histogram *h, struct kx_histogram_pool *pool)
{
	struct kx_coarse *coarse = new_list(pool, FIRST_LIST_ROOM);
	uint16_t ends[2], *keys = keys_of(h->data, h->room);
	bool fits = true;

	if (!coarse)
		return false;
	table_quantiles(h, most, 2, ends);
	kx_coarse_init(coarse, kx_bucket_of_code(ends[0]), kx_bucket_of_code(ends[1]));
	for (uint32_t i = 0; i < h->room && fits; i++)
		fits = kx_coarse_add(coarse, keys[i], counts_of(h->data)[i]);
	pool->bytes += bytes_of(FIRST_LIST_ROOM) - bytes_of(h->room);
	free_data(h->data, h->room, pool);
	h->data = coarse;
	h->room = FIRST_LIST_ROOM;
	return fits;
}

struct kx_coarse *kx_histogram_coarsen(struct kx_histogram *h, struct kx_histogram_pool *pool)
{
	if (h->used < FIRST_LIST_ROOM)
		return NULL;
	if (!is_table(h->room))
		coarsen_list(h);
	else if (!coarsen_table(h, pool))
		return NULL;
	h->used = 0;
	return h->data;
}

void kx_histogram_free(struct kx_histogram *h, struct kx_histogram_pool *pool)
{
	pool->bytes -= bytes_of(h->room);
	free_data(h->data, h->room, pool);
	memset(h, 0, sizeof(*h));
}

static void list_quantiles(struct kx_histogram *h, const unsigned *permille, unsigned n,
			   uint16_t *codes)
{
	uint16_t *list = h->data;

	kx_codes_sort(list, h->used);
	for (unsigned i = 0; i < n; i++) {
		uint64_t rank = kx_quantile_rank(h->used, permille[i]);

		codes[i] = kx_quantile_code(rank, h->used, list[rank - 1]);
	}
}

int kx_histogram_quantiles(struct kx_histogram *h, const unsigned *permille, unsigned n,
			   uint16_t *codes)
{
	if (!h->used)
		return -ENODATA;
	if (is_table(h->room))
		table_quantiles(h, permille, n, codes);
	else
		list_quantiles(h, permille, n, codes);
	return 0;
}

uint64_t kx_histogram_value(uint16_t code, uint64_t min, uint64_t max)
{
	uint64_t value;

	if (code == KX_HISTOGRAM_MIN)
		return min;
	if (code == KX_HISTOGRAM_MAX)
		return max;
	value = kx_code_middle(code, KX_CODE_BITS);
	return value < min ? min : value > max ? max : value;
}
