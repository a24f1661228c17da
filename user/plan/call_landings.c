// SPDX-License-Identifier: BSD-2-Clause
/* What lands in functions from outside of their own branches: see kx_call_sites_land. */
#include <string.h>

#include "base/byte_match.h"
#include "plan/call_sites_internal.h"

#define TABLE_MOST 1024 /* entries of a switch's table */

struct landings {
	struct kx_call_sites *s;
	size_t n;	 /* functions that can be landed in: those behind were read for their tables only */
	uint64_t lo, hi; /* all of them are between these */
};

static void land(const struct landings *l, uint64_t addr)
{
	if (addr - l->lo >= l->hi - l->lo)
		return;
	for (size_t i = 0; i < l->n; i++)
		kx_decoded_function_enter(&l->s->functions[i], addr);
}

/* Bytes of data from @addr to the end of the section that holds it; NULL if none does. */
static const uint8_t *data_at(struct kx_elf *elf, uint64_t addr, uint64_t *left)
{
	struct kx_elf_section s;
	const char *name;

	for (size_t i = 1; kx_elf_section_at(elf, i, &name, &s); i++)
		if (s.addr && s.data && addr - s.addr < s.size) {
			*left = s.size - (addr - s.addr);
			return s.data + (addr - s.addr);
		}
	return NULL;
}

/* What may be the table of a switch at @table: 32-bit distances from itself to code. */
static void land_table(void *ctx, uint64_t table)
{
	const struct landings *l = ctx;
	uint64_t left = 0;
	const uint8_t *p = data_at(l->s->elf, table, &left);

	for (unsigned i = 0; p && i < TABLE_MOST && (i + 1) * 4 <= left; i++) {
		int32_t near;
		uint64_t to;

		memcpy(&near, p + 4 * i, sizeof(near));
		to = table + (uint64_t)(int64_t)near;
		if (!kx_elf_code(l->s->elf, to, 1))
			return;
		land(l, to);
	}
}

#define BLOCK 16 /* bytes */

/* A bit for each of the 16 bytes at @p with which `jmp` or a conditional branch of 32 bits may begin; reads one byte more.
 */
static unsigned branches_at(const uint8_t *p)
{
	const __m128i first = _mm_loadu_si128((const __m128i *)p);
	const __m128i second = _mm_loadu_si128((const __m128i *)(p + 1));
	const __m128i conditional = _mm_and_si128(kx_byte_match(first, 0xff, 0x0f), kx_byte_match(second, 0xf0, 0x80));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(kx_byte_match(first, 0xff, 0xe9), conditional));
}

/* What may be a branch at offset @at. A cold part that has one may also have tables that lead into its function. */
static int land_branch(const struct landings *l, const struct kx_elf_section *code, uint64_t at)
{
	const uint64_t addr = code->addr + at, field = at + (code->data[at] == 0xe9 ? 1 : 2);
	uint64_t to;
	int32_t near;
	int error;

	if (field + sizeof(near) > code->size)
		return 0;
	memcpy(&near, code->data + field, sizeof(near));
	to = code->addr + field + sizeof(near) + (uint64_t)(int64_t)near;
	if (to - l->lo >= l->hi - l->lo)
		return 0;
	for (size_t i = 0; i < l->n; i++) {
		struct kx_decoded_function *f = &l->s->functions[i];

		if (!kx_decoded_function_has(f, to) || to == f->from || kx_decoded_function_has(f, addr))
			continue;
		kx_decoded_function_enter(f, to);
		kx_call_sites_function(l->s, addr, &error);
		return error;
	}
	return 0;
}

/* Direct branches of other functions. */
static int land_branches(const struct landings *l, const struct kx_elf_section *code)
{
	uint64_t at = 0;
	int error = 0;

	for (; !error && at + BLOCK < code->size; at += BLOCK)
		for (unsigned bits = branches_at(code->data + at); !error && bits; bits &= bits - 1)
			error = land_branch(l, code, at + (unsigned)__builtin_ctz(bits));
	for (; !error && at + 1 < code->size; at++)
		if (code->data[at] == 0xe9 || (code->data[at] == 0x0f && code->data[at + 1] >> 4 == 8))
			error = land_branch(l, code, at);
	return error;
}

/* Words of data that are addresses, as the file or its relocations have them. */
static void land_pointers(const struct landings *l)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	uint64_t word;

	while ((scn = elf_nextscn(kx_elf_handle(l->s->elf), scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);

		if (!sh || sh->sh_type != SHT_PROGBITS || !(sh->sh_flags & SHF_ALLOC) || (sh->sh_flags & SHF_EXECINSTR))
			continue;
		data = elf_rawdata(scn, NULL);
		for (uint64_t at = 0; data && data->d_buf && at + sizeof(word) <= data->d_size; at += sizeof(word)) {
			memcpy(&word, (const uint8_t *)data->d_buf + at, sizeof(word));
			land(l, word);
		}
	}
	scn = NULL;
	while ((data = kx_elf_next_of_type(l->s->elf, SHT_RELA, &scn))) {
		const Elf64_Rela *r = data->d_buf;

		for (size_t i = 0; i < data->d_size / sizeof(*r); i++)
			land(l, (uint64_t)r[i].r_addend);
	}
}

int kx_call_sites_land(struct kx_call_sites *s)
{
	struct landings l = { .s = s, .n = s->nfunctions, .lo = UINT64_MAX };

	if (!l.n)
		return 0;
	for (size_t i = 0; i < l.n; i++) {
		l.lo = s->functions[i].from < l.lo ? s->functions[i].from : l.lo;
		l.hi = s->functions[i].to > l.hi ? s->functions[i].to : l.hi;
	}
	for (size_t i = 0; i < s->ncode; i++)
		if (land_branches(&l, &s->code[i]))
			return -ENOMEM;
	land_pointers(&l);
	for (size_t i = 0; i < s->nfunctions; i++)
		kx_decoded_function_leas(&s->functions[i], land_table, &l);
	return 0;
}
