// SPDX-License-Identifier: BSD-2-Clause
#include "plan/gap.h"

#include <string.h>

#include "base/byte_match.h"
#include "plan/walk.h"

/* More instructions than kx_go_body and kx_plan_entry together look at. */
#define MOST 48
/* Conditional branches so near to the entry may be Go's check of its stack, behind which the body begins. */
#define CHECK 8

static void set_bits(uint64_t *word, uint64_t bits)
{
	if (bits & ~__atomic_load_n(word, __ATOMIC_RELAXED))
		__atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
}

static bool is_set(uint64_t word, uint64_t at)
{
	return word >> at % 64 & 1;
}

/* The bits of the word that begins at @at of offsets from @from to @to, its ends included; @to is not before it. */
static uint64_t bits_between(uint64_t at, uint64_t from, uint64_t to)
{
	const uint64_t low = from > at ? from - at : 0, high = to - at;

	return low > 63 ? 0 : ~0ULL << low & (high > 63 ? ~0ULL : ~0ULL >> (63 - high));
}

static bool ends_straight(enum kx_insn_class class)
{
	return class != KX_INSN_PLAIN && class != KX_INSN_STACK && class != KX_INSN_ODD;
}

/* [begin, end) of @r, decoded as one instruction behind the other: 64 bytes at once. */
static void ask_regular_exits(const struct kx_code_range *r, uint64_t begin, uint64_t end, const struct kx_gap_asked *asked)
{
	uint64_t straight = begin; /* what comes from here to the next return instruction is run in one go */

	for (uint64_t block = begin / 64 * 64; block < end; block += 64) {
		uint64_t ends = kx_walk_above(r, block, (KX_INSN_RET << KX_INFO_CLASS_SHIFT) - 1) &
				~kx_walk_above(r, block, (KX_INSN_ODD << KX_INFO_CLASS_SHIFT) - 1) &
				bits_between(block, begin, end - 1);

		for (; ends; ends &= ends - 1) {
			const uint64_t at = block + (unsigned)__builtin_ctzll(ends);

			if (r->info[at] >> KX_INFO_CLASS_SHIFT == KX_INSN_RET)
				for (uint64_t w = straight / 64 * 64; w <= at; w += 64)
					set_bits(&asked->words[w / 64].exits,
						 kx_walk_above(r, w, 0) & bits_between(w, straight, at));
			straight = at + (r->info[at] & KX_INFO_LENGTH);
		}
	}
}

static void ask_exits(const struct kx_code_range *r, uint64_t from, uint64_t size, const struct kx_gap_asked *asked)
{
	const uint64_t begin = from - r->addr, end = begin < r->size && size > r->size - begin ? r->size : begin + size;
	uint64_t straight = begin;
	unsigned length;
	bool regular;

	kx_walk_count(r, begin, end - begin, &regular);
	if (regular) {
		ask_regular_exits(r, begin, end, asked);
		return;
	}
	for (uint64_t at = begin; at < end && r->info[at]; at += length) {
		const enum kx_insn_class class = (enum kx_insn_class)(r->info[at] >> KX_INFO_CLASS_SHIFT);

		length = r->info[at] & KX_INFO_LENGTH;
		if (!ends_straight(class))
			continue;
		if (class == KX_INSN_RET)
			for (; straight <= at; straight += r->info[straight] & KX_INFO_LENGTH)
				set_bits(&asked->words[straight / 64].exits, 1ULL << straight % 64);
		straight = at + length;
	}
}

static void ask_entry(const struct kx_code_range *r, const struct kx_symbol *sym, const struct kx_gap_asked *asked)
{
	const uint64_t end = sym->addr + sym->size - r->addr < r->size ? sym->addr + sym->size : r->addr + r->size;
	uint64_t pos = sym->addr;

	for (int i = 0; i < MOST && pos < end; i++) {
		const enum kx_insn_class class = kx_range_class(r, pos);
		const uint8_t *b = kx_range_bytes(r, pos);
		const unsigned length = kx_range_length(r, pos);

		if (i)
			set_bits(&asked->words[(pos - r->addr) / 64].entries, 1ULL << (pos - r->addr) % 64);
		/* a push moves the stack */
		if (!length || kx_is_push(b, length))
			break;
		if (ends_straight(class) && (class != KX_INSN_BRANCH || i >= CHECK))
			break;
		pos += length;
	}
}

void kx_gap_ask(const struct kx_code_range *r, const struct kx_symbol *sym, const struct kx_gap_asked *asked)
{
	if (sym->addr - r->addr < r->size) {
		ask_entry(r, sym, asked);
		ask_exits(r, sym->addr, sym->size, asked);
	}
	if (sym->cold_addr && sym->cold_addr - r->addr < r->size)
		ask_exits(r, sym->cold_addr, sym->cold_size, asked);
}

/* A branch goes to the offset @at, or seems to. */
static bool lands(const struct kx_code_range *r, const struct kx_gap_asked *asked, uint64_t at)
{
	if (at >= r->size)
		return false;
	if (is_set(asked->words[at / 64].exits, at))
		set_bits(&r->entered[at / 64], 1ULL << at % 64);
	return is_set(asked->words[at / 64].entries, at);
}

/*
 * Whether the bytes at offset @at may be call, jmp, jcc or xbegin with a displacement of 32 bits to an address that is
 * asked for. A prefix 66 shortens only xbegin's, as the decoder has it: on processors where it does the others', a 64-bit
 * program cannot jump so.
 */
static bool lands_far(const struct kx_code_range *r, const struct kx_gap_asked *asked, uint64_t at)
{
	const uint8_t *b = r->bytes + at;
	const uint64_t end = at + ((*b & 0xfe) == 0xe8 ? 5 : 6);
	int16_t short_far;
	int32_t far;

	if (end > r->size)
		return false;
	if ((*b & 0xfe) != 0xe8 && (*b != 0x0f || b[1] >> 4 != 8) && (*b != 0xc7 || b[1] != 0xf8))
		return false;
	memcpy(&short_far, b + 2, sizeof(short_far));
	if (*b == 0xc7 && lands(r, asked, at + 4 + (uint64_t)(int64_t)short_far))
		return true;
	memcpy(&far, r->bytes + end - sizeof(far), sizeof(far));
	return lands(r, asked, end + (uint64_t)(int64_t)far);
}

/* The same of jmp, jcc, loop and jrcxz with 8 bits. */
static bool lands_near(const struct kx_code_range *r, const struct kx_gap_asked *asked, uint64_t at)
{
	const uint8_t *b = r->bytes + at;

	if (at + 2 > r->size || (*b >> 4 != 7 && *b != 0xeb && (*b & 0xfc) != 0xe0))
		return false;
	return lands(r, asked, at + 2 + (uint64_t)(int64_t)(int8_t)b[1]);
}

#define BLOCK 16 /* bytes */
#define NEAR 130 /* no branch of 8 bits reaches farther */

/* Where in the block at @p lands_far may find something, a bit each. Reads one byte more. */
static unsigned candidates(const uint8_t *p)
{
	const __m128i first = _mm_loadu_si128((const __m128i *)p);
	const __m128i second = _mm_loadu_si128((const __m128i *)(p + 1));
	const __m128i jcc = _mm_and_si128(kx_byte_match(first, 0xff, 0x0f), kx_byte_match(second, 0xf0, 0x80));
	const __m128i xbegin = _mm_and_si128(kx_byte_match(first, 0xff, 0xc7), kx_byte_match(second, 0xff, 0xf8));
	const __m128i any = _mm_or_si128(kx_byte_match(first, 0xfe, 0xe8), _mm_or_si128(jcc, xbegin));

	return (unsigned)_mm_movemask_epi8(any);
}

bool kx_gap_may_land(const struct kx_code_range *r, const struct kx_gap_asked *asked, uint64_t from, uint64_t to)
{
	const uint64_t begin = from - r->addr, end = to - r->addr < r->size ? to - r->addr : r->size;
	uint64_t at = begin;

	for (; at + BLOCK < r->size && at + BLOCK <= end; at += BLOCK)
		for (unsigned bits = candidates(r->bytes + at); bits; bits &= bits - 1)
			if (lands_far(r, asked, at + (unsigned)__builtin_ctz(bits)))
				return true;
	for (; at < end; at++)
		if (lands_far(r, asked, at))
			return true;
	/* what is asked for lies outside */
	for (at = begin; at < end; at++) {
		if (at - begin >= NEAR && end - at > NEAR)
			at = end - NEAR;
		if (lands_near(r, asked, at))
			return true;
	}
	return false;
}
