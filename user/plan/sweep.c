// SPDX-License-Identifier: BSD-2-Clause
/* Decodes all code of a binary that planning asks for, in several threads. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "base/parallel.h"
#include "plan/decode_internal.h"
#include "plan/gap.h"
#include "plan/quick_decode.h"

/* @size bytes, all zero. */
static void *piece_of(const struct kx_code *code, size_t size)
{
	return code->memory ? kx_code_memory_piece(code->memory, size) : calloc(1, size);
}

/* A bit for each of @size bytes. */
static uint64_t *bits_of(const struct kx_code *code, size_t size)
{
	return piece_of(code, (size / 64 + 1) * sizeof(uint64_t));
}

static void free_piece(const struct kx_code *code, void *piece)
{
	if (!code->memory)
		free(piece);
}

/* Threads do so at the same time. */
static void set_bit(uint64_t *bits, uint64_t at)
{
	const uint64_t bit = 1ULL << at % 64;

	if (!(__atomic_load_n(&bits[at / 64], __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(&bits[at / 64], bit, __ATOMIC_RELAXED);
}

static void add_target(const struct kx_code *code, const struct kx_code_range *r, uint64_t addr, bool inside)
{
	if (addr - r->addr >= r->size)
		r = kx_code_range(code, addr);
	if (!r)
		return;
	set_bit(r->targets, addr - r->addr);
	if (!inside)
		set_bit(r->entered, addr - r->addr);
}

static bool is_part_of(const struct kx_symbol *s, uint64_t addr)
{
	return s && (addr - s->addr < s->size || (s->cold_addr && addr - s->cold_addr < s->cold_size));
}

/*
 * Decodes [from, to), code of the function @s, or of none if it is NULL. An instruction that an overlapping symbol has
 * brought already is stepped over.
 */
static void sweep(const struct kx_code *code, const struct kx_symbol *s, uint64_t from, uint64_t to)
{
	const struct kx_code_range *r = kx_code_range(code, from);
	uint64_t at, end, target;

	if (!r)
		return;
	at = from - r->addr;
	end = to - r->addr < r->size ? to - r->addr : r->size;
	while (at < end) {
		unsigned info = r->info[at];

		if (info) {
			at += info & KX_INFO_LENGTH;
			continue;
		}
		at += kx_quick_run(r->bytes + at, r->size - at, end - at, r->info + at, &info);
		if (at >= end || r->info[at])
			continue;
		if (info)
			target = kx_quick_target(r->addr + at, r->bytes + at, info);
		else
			info = kx_code_info(code, r, r->addr + at, &target);
		if (!info)
			info = KX_INSN_ODD << KX_INFO_CLASS_SHIFT | 1;
		r->info[at] = (uint8_t)info;
		if (target)
			add_target(code, r, target, is_part_of(s, target));
		at += info & KX_INFO_LENGTH;
	}
}

/* Index of the first symbol at @addr or behind it. */
static size_t first_from(const struct kx_symbols *syms, uint64_t addr)
{
	return KX_COUNT_LEADING(syms->count, i, syms->items[i].addr < addr);
}

/* The code is decoded in pieces that no symbol reaches over, by threads that share them out. */
#define PIECE (256u << 10)

struct region {
	uint64_t from, to;
};

struct work {
	struct kx_code *code;
	const struct kx_symbols *syms;
	struct region *regions; /* sections, or segments where there are none: a segment may hold read-only data as well */
	size_t nregions;
	uint64_t *bounds; /* nbounds + 1 of them: 0, starts of symbols, UINT64_MAX */
	size_t npieces;
	size_t next;     /* atomic */
	bool asks;       /* there is only one segment */
	struct kx_gap_asked asked; /* of that */
};

/* The functions of [from, to). */
static void sweep_functions(const struct work *w, uint64_t from, uint64_t to)
{
	const struct kx_symbols *syms = w->syms;

	for (size_t i = first_from(syms, from); i < syms->count && syms->items[i].addr < to; i++) {
		const struct kx_symbol *s = &syms->items[i];

		sweep(w->code, s, s->addr, s->addr + s->size);
	}
}

static void *ask_pieces(void *arg)
{
	struct work *w = arg;
	const struct kx_symbols *syms = w->syms;
	size_t k;

	while ((k = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < w->npieces)
		for (size_t i = first_from(syms, w->bounds[k]); i < syms->count && syms->items[i].addr < w->bounds[k + 1]; i++)
			kx_gap_ask(w->code->ranges, &syms->items[i], &w->asked);
	return NULL;
}

static void sweep_gap(const struct work *w, uint64_t from, uint64_t to)
{
	const struct kx_code_range *r = kx_code_range(w->code, from);

	if (r && (!w->asks || kx_gap_may_land(r, &w->asked, from, to)))
		sweep(w->code, NULL, from, to);
}

/* What lies in [from, to) outside of all symbols, of which those before @first end before @from. */
static void sweep_gaps(const struct work *w, size_t first, uint64_t from, uint64_t to)
{
	for (size_t i = first; i < w->syms->count && from < to; i++) {
		const struct kx_symbol *s = &w->syms->items[i];

		if (s->addr + s->size <= from)
			continue;
		if (s->addr > from)
			sweep_gap(w, from, s->addr < to ? s->addr : to);
		from = s->addr + s->size;
	}
	if (from < to)
		sweep_gap(w, from, to);
}

static void *function_pieces(void *arg)
{
	struct work *w = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < w->npieces)
		sweep_functions(w, w->bounds[i], w->bounds[i + 1]);
	return NULL;
}

static void *gap_pieces(void *arg)
{
	struct work *w = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < w->npieces) {
		const uint64_t from = w->bounds[i], to = w->bounds[i + 1];
		const size_t first = first_from(w->syms, from);

		for (size_t k = 0; k < w->nregions; k++) {
			const uint64_t lo = w->regions[k].from, hi = w->regions[k].to;

			sweep_gaps(w, first, lo > from ? lo : from, hi < to ? hi : to);
		}
	}
	return NULL;
}

static int find_regions(struct kx_elf *elf, const struct kx_code *code, struct work *w)
{
	Elf_Scn *scn = NULL;
	size_t sections = 0;

	elf_getshdrnum(kx_elf_handle(elf), &sections);
	w->regions = calloc(sections + code->nranges + 1, sizeof(*w->regions));
	if (!w->regions)
		return -ENOMEM;
	while (w->nregions < sections && (scn = elf_nextscn(kx_elf_handle(elf), scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);

		if (sh && sh->sh_type != SHT_NOBITS && (sh->sh_flags & SHF_EXECINSTR))
			w->regions[w->nregions++] =
				(struct region){ sh->sh_addr, sh->sh_addr + sh->sh_size };
	}
	for (size_t i = 0, any = w->nregions; !any && i < code->nranges; i++)
		w->regions[w->nregions++] = (struct region){
			code->ranges[i].addr, code->ranges[i].addr + code->ranges[i].size };
	return 0;
}

static int cut_pieces(const struct kx_symbols *syms, struct work *w)
{
	uint64_t end = 0;
	size_t n = 0;

	w->bounds = calloc(syms->count + 2, sizeof(*w->bounds));
	if (!w->bounds)
		return -ENOMEM;
	for (size_t i = 0; i < syms->count; i++) {
		const struct kx_symbol *s = &syms->items[i];

		if (s->addr >= end && s->addr - w->bounds[n] >= PIECE)
			w->bounds[++n] = s->addr;
		if (s->addr + s->size > end)
			end = s->addr + s->size;
	}
	w->bounds[++n] = UINT64_MAX;
	w->npieces = n;
	return 0;
}

static int decode_all(struct kx_code *code, struct kx_elf *elf, const struct kx_symbols *syms, size_t threads)
{
	struct work w = { .code = code, .syms = syms };
	int ret = find_regions(elf, code, &w);

	if (!ret)
		ret = cut_pieces(syms, &w);
	if (!ret && code->nranges == 1) {
		w.asks = true;
		w.asked.words = piece_of(code, (code->ranges[0].size / 64 + 1) * sizeof(*w.asked.words));
		ret = w.asked.words ? 0 : -ENOMEM;
	}
	if (!ret) {
		threads = threads < w.npieces ? threads : w.npieces;
		/* anywhere between other symbols' code, so before it is shared out */
		for (size_t i = 0; i < syms->count; i++)
			if (syms->items[i].cold_addr)
				sweep(code, &syms->items[i], syms->items[i].cold_addr,
				      syms->items[i].cold_addr + syms->items[i].cold_size);
		kx_parallel_run(threads, function_pieces, &w);
		w.next = 0;
		/* not before all is decoded: of the neighbours' code as much is read as fills 64 bytes */
		if (w.asks)
			kx_parallel_run(threads, ask_pieces, &w);
		w.next = 0;
		kx_parallel_run(threads, gap_pieces, &w);
	}
	free_piece(code, w.asked.words);
	free(w.regions);
	free(w.bounds);
	return ret;
}

static int add_range(struct kx_code *code, const struct kx_elf_section *seg)
{
	struct kx_code_range *r = &code->ranges[code->nranges];

	*r = (struct kx_code_range){ .addr = seg->addr, .size = seg->size, .bytes = seg->data };
	r->info = piece_of(code, seg->size + KX_INFO_BEYOND);
	r->targets = bits_of(code, seg->size);
	r->entered = bits_of(code, seg->size);
	code->nranges++;
	return r->info && r->targets && r->entered ? 0 : -ENOMEM;
}

int kx_code_new(struct kx_elf *elf, const struct kx_symbols *syms, size_t threads, struct kx_code_memory *memory,
		struct kx_code **out, struct kx_err *err)
{
	struct kx_code *code = calloc(1, sizeof(*code));
	struct kx_elf_section seg;
	size_t n = 0;

	if (!code)
		goto no_memory;
	ZydisDecoderInit(&code->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	while (kx_elf_exec_segment(elf, n, &seg))
		n++;
	code->ranges = calloc(n ? n : 1, sizeof(*code->ranges));
	if (!code->ranges)
		goto no_memory;
	if (memory && kx_code_memory_take(memory, kx_code_memory_need(elf), threads))
		code->memory = memory;
	for (size_t i = 0; i < n; i++)
		if (kx_elf_exec_segment(elf, i, &seg) && seg.data && seg.size && add_range(code, &seg))
			goto no_memory;
	if (decode_all(code, elf, syms, threads))
		goto no_memory;
	*out = code;
	return 0;

no_memory:
	kx_code_free(code);
	return kx_err_set(err, -ENOMEM, "out of memory while decoding %s", kx_elf_path(elf));
}

void kx_code_free(struct kx_code *code)
{
	if (!code)
		return;
	for (size_t i = 0; i < code->nranges; i++) {
		free_piece(code, code->ranges[i].info);
		free_piece(code, code->ranges[i].targets);
		free_piece(code, code->ranges[i].entered);
	}
	if (code->memory)
		kx_code_memory_give(code->memory);
	free(code->ranges);
	free(code);
}
