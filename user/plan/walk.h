// SPDX-License-Identifier: BSD-2-Clause
/*
 * Walks over those instructions of a function that a question is about. Going from one instruction to the next by their
 * lengths, each waits for the one before; where nothing overlaps, the starts of 64 bytes of code are seen at once.
 */
#ifndef KX_WALK_H
#define KX_WALK_H

#include <emmintrin.h>

#include "plan/function.h"

#define KX_WALK_BLOCK 64 /* bytes of code, as many as a word of targets has bits */

struct kx_walk {
	const struct kx_code_range *r;
	uint64_t at, end; /* offsets in it: of an irregular part the next instruction, else the block */
	uint64_t bits;    /* of a regular part: what is left of the block, a bit for each wanted start */
	unsigned least;  /* enum kx_insn_class, or above */
	bool regular, targets;
};

/* A bit for each of the 64 bytes at offset @at of which the information is above @least. */
static inline uint64_t kx_walk_above(const struct kx_code_range *r, uint64_t at, int least)
{
	const __m128i *info = (const __m128i *)(r->info + at);
	const __m128i bound = _mm_set1_epi8((char)least);
	uint64_t bits = 0;

	for (unsigned i = 0; i < 4; i++)
		bits |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpgt_epi8(_mm_loadu_si128(info + i), bound)) << 16 * i;
	return bits;
}

static inline uint64_t kx_walk_sum(__m128i two)
{
	return (uint64_t)_mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two)));
}

/*
 * Counts the instructions in @size bytes of @r from offset @at on, and whether that part is regular: then their lengths add
 * up to its own. They do no more as soon as an instruction overlaps another, or the end, as all from its beginning on one
 * behind the other are decoded. @r may be NULL.
 */
static inline uint32_t kx_walk_count(const struct kx_code_range *r, uint64_t at, uint64_t size, bool *regular)
{
	const __m128i length = _mm_set1_epi8(KX_INFO_LENGTH), one = _mm_set1_epi8(1), zero = _mm_setzero_si128();
	const uint8_t *info, *end;
	__m128i sums = zero, starts = zero;

	*regular = false;
	if (!r || size > r->size - at)
		return 0;
	info = r->info + at;
	for (end = info + size; end - info >= 16; info += 16) {
		const __m128i block = _mm_loadu_si128((const __m128i *)info);

		starts = _mm_add_epi64(starts, _mm_sad_epu8(_mm_min_epu8(block, one), zero));
		sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_and_si128(block, length), zero));
	}
	for (; info < end; info++) {
		starts = _mm_add_epi64(starts, _mm_cvtsi32_si128(*info > 0));
		sums = _mm_add_epi64(sums, _mm_cvtsi32_si128(*info & KX_INFO_LENGTH));
	}
	*regular = kx_walk_sum(sums) == size;
	return (uint32_t)kx_walk_sum(starts);
}

static inline void kx_walk_block(struct kx_walk *w)
{
	w->bits = kx_walk_above(w->r, w->at, ((int)w->least << KX_INFO_CLASS_SHIFT) - 1);
	if (w->targets)
		w->bits |= kx_walk_above(w->r, w->at, 0) & w->r->targets[w->at / KX_WALK_BLOCK];
	if (w->end - w->at < KX_WALK_BLOCK)
		w->bits &= (1ULL << (w->end - w->at)) - 1;
}

/*
 * Begins at the start of @part, which has been scanned. Instructions of classes below @least may be left out, with @targets
 * only those to which no branch goes.
 */
static inline void kx_walk_begin(struct kx_walk *w, const struct kx_part *part, unsigned least, bool targets)
{
	/* an empty part may lie outside of all segments */
	const uint64_t size = part->to - part->from, from = size ? part->from - part->range->addr : 0;

	*w = (struct kx_walk){ .r = part->range,
			       .at = from,
			       .end = from + size,
			       .least = least,
			       .regular = part->regular,
			       .targets = targets };
	if (!w->regular || !size)
		return;
	w->at = from / KX_WALK_BLOCK * KX_WALK_BLOCK;
	kx_walk_block(w);
	w->bits &= ~0ULL << from % KX_WALK_BLOCK;
}

/* The address of the next one; false at the end. */
static inline bool kx_walk_next(struct kx_walk *w, uint64_t *addr)
{
	if (!w->regular) {
		if (w->at >= w->end || !(w->r->info[w->at] & KX_INFO_LENGTH))
			return false;
		*addr = w->r->addr + w->at;
		w->at += w->r->info[w->at] & KX_INFO_LENGTH;
		return true;
	}
	while (!w->bits) {
		if (w->end - w->at <= KX_WALK_BLOCK)
			return false;
		w->at += KX_WALK_BLOCK;
		kx_walk_block(w);
	}
	*addr = w->r->addr + w->at + (unsigned)__builtin_ctzll(w->bits);
	w->bits &= w->bits - 1;
	return true;
}

/* Goes on behind @addr, which it has come to last, with another @least. */
static inline void kx_walk_change(struct kx_walk *w, uint64_t addr, unsigned least)
{
	w->least = least;
	if (!w->regular)
		return;
	kx_walk_block(w);
	w->bits &= ~1ULL << (addr - w->r->addr) % KX_WALK_BLOCK;
}

#endif
