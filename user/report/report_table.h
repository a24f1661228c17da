// SPDX-License-Identifier: BSD-2-Clause
/*
 * The statistics of all functions of a report. A function's slot is its number in order of first
 * entry. A trace of many functions misses the cache at each call, so a function's numbers fill one
 * cache line.
 *
 * Memory for histograms is limited by the number of functions, however long the trace is. Where a histogram would have to
 * grow beyond it, only counts of ranges are left, and the percentiles come from another pass over the same
 * calls (kx_report_table_end_pass; quantile_search.h). A function that is called more often than these counts can hold
 * gets a histogram in a later pass.
 */
#ifndef KX_REPORT_TABLE_H
#define KX_REPORT_TABLE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/histogram.h"

#define KX_REPORT_CHUNK 4096 /* functions allocated at once: large enough not to be taken from the heap */
#define KX_REPORT_NO_SLOT UINT32_MAX

/* What is in a function's union; the function is complete when it is DONE. */
enum kx_report_progress {
	KX_REPORT_RECORDING, /* histogram */
	KX_REPORT_COARSE,    /* histogram, of which only a struct kx_coarse is left; first pass */
	KX_REPORT_SEARCHING, /* search; later passes */
	KX_REPORT_DEFERRED,  /* nothing: a later pass records a histogram */
	KX_REPORT_DONE,	     /* codes */
};

/* Times are ticks. */
struct kx_report_stat {
	uint32_t func;
	uint32_t open : 29;
	uint32_t progress : 3; /* enum kx_report_progress */
	uint64_t count, total, self, min, max;
	union {
		struct kx_histogram histogram;
		struct kx_quantile_search search;
		uint16_t codes[3]; /* DONE: of the percentiles 50, 90 and 99 */
	};
};

_Static_assert(sizeof(struct kx_report_stat) == 64, "a function's numbers fill one cache line");

#define KX_REPORT_DIRECT (1u << 20)

struct kx_report_place {
	uint32_t func;
	uint32_t slot; /* + 1; 0: free */
};

struct kx_report_table {
	struct kx_report_stat **chunks;
	size_t count, nchunks;
	uint32_t *direct; /* slot + 1 of the functions below ndirect; 0: none. Ids are mostly dense */
	size_t ndirect;   /* at most KX_REPORT_DIRECT */
	struct kx_report_place *places; /* function to slot, from KX_REPORT_DIRECT on; open addressing */
	size_t nplaces;                 /* a power of two */
	size_t nplaced;
	uint64_t *unmeasured; /* by slot: calls whose exit was not recorded; NULL: none so far */
	size_t unmeasured_room;
	struct kx_histogram_pool pool;
	size_t limit;                   /* the pool's of the first pass */
	uint16_t *lists;                /* of the searches of a later pass */
	bool fixed_limit;               /* the pool's limit does not grow with functions */
	bool later_pass;                /* only histograms are filled: the rest is complete */
};

/*
 * @histogram_bytes: memory for all histograms; 0: by the number of functions. @t is all
 * zero and needs kx_report_table_free also after an error: -ENOMEM.
 */
int kx_report_table_init(struct kx_report_table *t, size_t histogram_bytes);
void kx_report_table_free(struct kx_report_table *t);

/* The slot of @func, which has none yet. Errors: -ENOMEM. */
int kx_report_table_add_function(struct kx_report_table *t, uint32_t func, uint32_t *slot);
/* Adding @took to the histogram of @s failed with @r: 0 if less is kept of it from now on, else -ENOMEM. */
int kx_report_table_defer(struct kx_report_table *t, struct kx_report_stat *s, uint64_t took, int r);
/* Adds @took to what is kept in place of a histogram. */
void kx_report_table_add_narrowed(struct kx_report_table *t, struct kx_report_stat *s, uint64_t took);
/* Adds a completed call without a measured end: only its count. Errors: -ENOMEM. */
int kx_report_table_add_unmeasured(struct kx_report_table *t, uint32_t slot);
/*
 * Computes the percentiles of the histograms recorded in this pass, then allocates deferred ones up
 * to the limit. 1 if another pass over the calls is needed, else 0 or -ENOMEM.
 */
int kx_report_table_end_pass(struct kx_report_table *t);

static inline struct kx_report_stat *kx_report_stat_at(const struct kx_report_table *t,
						       uint32_t slot)
{
	return &t->chunks[slot / KX_REPORT_CHUNK][slot % KX_REPORT_CHUNK];
}

/*
 * The place of @func, or the free one for it. Each id is its own hash, so that dense ids do not
 * collide; perturbing with the upper bits separates ids of any pattern.
 */
static inline struct kx_report_place *kx_report_place_of(struct kx_report_place *places, size_t n,
							 uint32_t func)
{
	size_t at = func & (n - 1), perturb = func;

	while (places[at].slot && places[at].func != func) {
		perturb >>= 5;
		at = (at * 5 + perturb + 1) & (n - 1);
	}
	return &places[at];
}

/* The slot of @func, or KX_REPORT_NO_SLOT. */
static inline uint32_t kx_report_table_find(const struct kx_report_table *t, uint32_t func)
{
	if (func < t->ndirect)
		return t->direct[func] - 1;
	return func < KX_REPORT_DIRECT ? KX_REPORT_NO_SLOT :
					 kx_report_place_of(t->places, t->nplaces, func)->slot - 1;
}

/* Prefetches what kx_report_table_find of @func needs, if that is likely not to be in the cache. */
static inline void kx_report_table_prefetch(const struct kx_report_table *t, uint32_t func)
{
	if (func < t->ndirect)
		__builtin_prefetch(&t->direct[func]);
}

/* Prefetches where the duration of a call of @s will be kept. */
static inline void kx_report_stat_prefetch(const struct kx_report_table *t, const struct kx_report_stat *s)
{
	const void *list = t->lists + s->search.list, *data = s->histogram.data;

	__builtin_prefetch(s->progress == KX_REPORT_SEARCHING ? list : data, 1);
}

/* The slot of @func, which is added if it has none. Errors: -ENOMEM. */
static inline int kx_report_table_slot(struct kx_report_table *t, uint32_t func, uint32_t *slot)
{
	*slot = kx_report_table_find(t, func);
	return *slot != KX_REPORT_NO_SLOT ? 0 : kx_report_table_add_function(t, func, slot);
}

/* How many of the function's completed calls have no measured end. */
static inline uint64_t kx_report_table_unmeasured(const struct kx_report_table *t, uint32_t slot)
{
	return slot < t->unmeasured_room ? t->unmeasured[slot] : 0;
}

/* The numbers of @func; NULL: it has no slot. */
static inline struct kx_report_stat *kx_report_stat_of(const struct kx_report_table *t, uint32_t func)
{
	uint32_t slot = kx_report_table_find(t, func);

	return slot == KX_REPORT_NO_SLOT ? NULL : kx_report_stat_at(t, slot);
}

/* Adds a completed call of @took ticks, @self of them outside callees. Errors: -ENOMEM. */
static inline int kx_report_table_add_call(struct kx_report_table *t, struct kx_report_stat *s, uint64_t took,
					   uint64_t self, bool outermost)
{
	int r;

	if (!t->later_pass) {
		/* without branches: what is not often called has a new extreme every few calls */
		const uint64_t min = s->min, max = s->max;

		s->count++;
		s->self += self;
		s->total += took & -(uint64_t)outermost;
		s->min = took < min ? took : min;
		s->max = took > max ? took : max;
	}
	if (s->progress != KX_REPORT_RECORDING) {
		kx_report_table_add_narrowed(t, s, took);
		return 0;
	}
	r = kx_histogram_add(&s->histogram, took, &t->pool);
	return r ? kx_report_table_defer(t, s, took, r) : 0;
}

#endif
