// SPDX-License-Identifier: BSD-2-Clause
#include "plan/decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "plan/quick_decode.h"

#define MODRM_SP 4 /* register number of RSP; as rm of a memory operand it means SIB */
#define MODRM_BP 5

struct kx_code {
	ZydisDecoder decoder;
	struct kx_code_range *ranges; /* executable segments, few */
	size_t nranges;
};

const struct kx_code_range *kx_code_range(const struct kx_code *code, uint64_t addr)
{
	for (size_t i = 0; i < code->nranges; i++) {
		const struct kx_code_range *r = &code->ranges[i];

		if (addr - r->addr < r->size)
			return r;
	}
	return NULL;
}

unsigned kx_code_length(const struct kx_code *code, uint64_t addr)
{
	const struct kx_code_range *r = kx_code_range(code, addr);

	return r ? kx_range_length(r, addr) : 0;
}

uint64_t kx_code_previous(const struct kx_code *code, uint64_t addr)
{
	for (unsigned back = 1; back <= ZYDIS_MAX_INSTRUCTION_LENGTH; back++)
		if (kx_code_length(code, addr - back) == back)
			return addr - back;
	return 0;
}

enum kx_insn_class kx_code_class(const struct kx_code *code, uint64_t addr)
{
	const struct kx_code_range *r = kx_code_range(code, addr);

	return r ? kx_range_class(r, addr) : KX_INSN_PLAIN;
}

bool kx_code_is_target(const struct kx_code *code, uint64_t addr)
{
	const struct kx_code_range *r = kx_code_range(code, addr);

	return r && kx_range_is_target(r, addr);
}

/* Threads do so at the same time. */
static void add_target(const struct kx_code *code, const struct kx_code_range *r, uint64_t addr)
{
	uint64_t *word, bit;

	if (addr - r->addr >= r->size)
		r = kx_code_range(code, addr);
	if (!r)
		return;
	word = &r->targets[(addr - r->addr) / 64];
	bit = 1ULL << (addr - r->addr) % 64;
	if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

static bool decode_in(const struct kx_code *code, const struct kx_code_range *r, uint64_t addr,
		      struct kx_insn *insn)
{
	uint64_t left = r->size - (addr - r->addr);

	insn->addr = addr;
	insn->bytes = r->bytes + (addr - r->addr);
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
		&code->decoder, &insn->context, insn->bytes,
		left < ZYDIS_MAX_INSTRUCTION_LENGTH ? left : ZYDIS_MAX_INSTRUCTION_LENGTH,
		&insn->z));
}

bool kx_code_decode(const struct kx_code *code, uint64_t addr, struct kx_insn *insn)
{
	const struct kx_code_range *r = kx_code_range(code, addr);

	return r && decode_in(code, r, addr, insn);
}

bool kx_insn_operands(const struct kx_code *code, const struct kx_insn *insn,
		      ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT])
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&code->decoder, &insn->context, &insn->z,
						       operands, insn->z.operand_count));
}

bool kx_insn_target(const struct kx_insn *insn, uint64_t *target)
{
	if (!insn->z.raw.imm[0].is_relative)
		return false;
	*target = insn->addr + insn->z.length + (uint64_t)insn->z.raw.imm[0].value.s;
	return true;
}

bool kx_insn_is_padding(const struct kx_insn *insn)
{
	return insn->z.mnemonic == ZYDIS_MNEMONIC_INT3 || insn->z.mnemonic == ZYDIS_MNEMONIC_NOP;
}

bool kx_code_branch(const struct kx_code *code, uint64_t addr, uint64_t *target,
		    bool *conditional)
{
	const struct kx_code_range *r = kx_code_range(code, addr);
	struct kx_insn insn;

	if (!r)
		return false;
	if (kx_range_branch(r, addr, target, conditional))
		return true;
	if (!decode_in(code, r, addr, &insn))
		return false;
	*conditional = insn.z.meta.category == ZYDIS_CATEGORY_COND_BR;
	return kx_insn_target(&insn, target);
}

/* Whether a ModRM byte names RSP or RBP, as a register or as the base of an address. */
static bool mentions_stack(const ZydisDecodedInstruction *z)
{
	unsigned reg, rm;

	if (!(z->attributes & ZYDIS_ATTRIB_HAS_MODRM))
		return false;
	reg = z->raw.modrm.reg;
	rm = z->raw.modrm.rm;
	/* The opcode extension of `add $8, %rax` reads as a register too: harmless here. */
	if (reg == MODRM_SP || reg == MODRM_BP)
		return true;
	if (z->raw.modrm.mod == 3)
		return rm == MODRM_SP || rm == MODRM_BP;
	if (z->attributes & ZYDIS_ATTRIB_HAS_SIB)
		return z->raw.sib.base == MODRM_SP || z->raw.sib.base == MODRM_BP;
	return rm == MODRM_BP && z->raw.modrm.mod != 0;
}

enum kx_insn_class kx_insn_classify(const ZydisDecodedInstruction *z)
{
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_RET:
		return z->mnemonic == ZYDIS_MNEMONIC_RET &&
				       z->meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR ?
			       KX_INSN_RET :
			       KX_INSN_SYSTEM;
	case ZYDIS_CATEGORY_COND_BR:
		return z->raw.imm[0].is_relative ? KX_INSN_BRANCH : KX_INSN_PLAIN;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (z->mnemonic == ZYDIS_MNEMONIC_XABORT)
			return KX_INSN_PLAIN;
		return z->raw.imm[0].is_relative ? KX_INSN_BRANCH : KX_INSN_JUMP;
	case ZYDIS_CATEGORY_CALL:
		return KX_INSN_CALL;
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
		return KX_INSN_SYSTEM;
	case ZYDIS_CATEGORY_INTERRUPT:
		return z->mnemonic == ZYDIS_MNEMONIC_INT3 ? KX_INSN_ODD : KX_INSN_SYSTEM;
	case ZYDIS_CATEGORY_PUSH:
	case ZYDIS_CATEGORY_POP:
		return KX_INSN_STACK;
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
		return KX_INSN_ODD;
	default:
		break;
	}
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		return KX_INSN_ODD;
	case ZYDIS_MNEMONIC_LEAVE:
	case ZYDIS_MNEMONIC_ENTER:
		return KX_INSN_STACK;
	default:
		return mentions_stack(z) ? KX_INSN_STACK : KX_INSN_PLAIN;
	}
}

/* The instruction at @addr by the full decoder: KX_INFO_..., 0 if it is none; and where it branches to, 0 if nowhere. */
static unsigned decode_fully(const struct kx_code *code, const struct kx_code_range *r, uint64_t addr, uint64_t *target)
{
	enum kx_insn_class class;
	struct kx_insn insn;

	*target = 0;
	if (!decode_in(code, r, addr, &insn))
		return 0;
	class = kx_insn_classify(&insn.z);
	if ((class == KX_INSN_BRANCH || class == KX_INSN_CALL || insn.z.mnemonic == ZYDIS_MNEMONIC_XBEGIN) &&
	    !kx_insn_target(&insn, target))
		*target = 0;
	return class << KX_INFO_CLASS_SHIFT | insn.z.length;
}

/* Target of what kx_quick_decode says is a jump or call; 0 if it is an indirect call. */
static uint64_t quick_target(uint64_t addr, const uint8_t *bytes, unsigned info)
{
	const unsigned length = info & KX_INFO_LENGTH;
	int32_t near;

	if (info >> KX_INFO_CLASS_SHIFT == KX_INSN_CALL && bytes[0] != 0xe8)
		return 0;
	if (length == 2)
		return addr + length + (uint64_t)(int64_t)(int8_t)bytes[1];
	memcpy(&near, bytes + length - sizeof(near), sizeof(near));
	return addr + length + (uint64_t)(int64_t)near;
}

/*
 * Decodes [from, to). An instruction that an overlapping symbol has brought
 * already is stepped over.
 */
static void sweep(const struct kx_code *code, uint64_t from, uint64_t to)
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
		info = kx_quick_decode(r->bytes + at, r->size - at);
		target = 0;
		if (!info)
			info = decode_fully(code, r, r->addr + at, &target);
		else if (info >> KX_INFO_CLASS_SHIFT == KX_INSN_BRANCH ||
			 info >> KX_INFO_CLASS_SHIFT == KX_INSN_CALL)
			target = quick_target(r->addr + at, r->bytes + at, info);
		if (!info)
			info = KX_INSN_ODD << KX_INFO_CLASS_SHIFT | 1;
		r->info[at] = (uint8_t)info;
		if (target)
			add_target(code, r, target);
		at += info & KX_INFO_LENGTH;
	}
}

/* Index of the first symbol at @addr or behind it. */
static size_t first_from(const struct kx_symbols *syms, uint64_t addr)
{
	size_t lo = 0, hi = syms->count;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (syms->items[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Decodes what lies in [from, to) outside of all symbols, of which those before @first end before @from. */
static void sweep_gaps(const struct kx_code *code, const struct kx_symbols *syms, size_t first,
		       uint64_t from, uint64_t to)
{
	for (size_t i = first; i < syms->count && from < to; i++) {
		const struct kx_symbol *s = &syms->items[i];

		if (s->addr + s->size <= from)
			continue;
		if (s->addr > from)
			sweep(code, from, s->addr < to ? s->addr : to);
		from = s->addr + s->size;
	}
	if (from < to)
		sweep(code, from, to);
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
	size_t next; /* atomic */
};

static void sweep_piece(const struct work *w, uint64_t from, uint64_t to)
{
	const struct kx_symbols *syms = w->syms;
	const size_t first = first_from(syms, from);

	for (size_t i = first; i < syms->count && syms->items[i].addr < to; i++)
		sweep(w->code, syms->items[i].addr, syms->items[i].addr + syms->items[i].size);
	for (size_t i = 0; i < w->nregions; i++) {
		const uint64_t lo = w->regions[i].from, hi = w->regions[i].to;

		sweep_gaps(w->code, syms, first, lo > from ? lo : from, hi < to ? hi : to);
	}
}

static void *sweep_pieces(void *arg)
{
	struct work *w = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < w->npieces)
		sweep_piece(w, w->bounds[i], w->bounds[i + 1]);
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
	if (!ret) {
		/* anywhere between other symbols' code, so before it is shared out */
		for (size_t i = 0; i < syms->count; i++)
			if (syms->items[i].cold_addr)
				sweep(code, syms->items[i].cold_addr,
				      syms->items[i].cold_addr + syms->items[i].cold_size);
		kx_parallel_run(threads < w.npieces ? threads : w.npieces, sweep_pieces, &w);
	}
	free(w.regions);
	free(w.bounds);
	return ret;
}

static int add_range(struct kx_code *code, const struct kx_elf_section *seg)
{
	struct kx_code_range *r = &code->ranges[code->nranges];

	*r = (struct kx_code_range){ .addr = seg->addr, .size = seg->size, .bytes = seg->data };
	r->info = calloc(1, seg->size);
	r->targets = calloc(seg->size / 64 + 1, sizeof(*r->targets));
	code->nranges++;
	return r->info && r->targets ? 0 : -ENOMEM;
}

int kx_code_new(struct kx_elf *elf, const struct kx_symbols *syms, size_t threads, struct kx_code **out,
		struct kx_err *err)
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
		free(code->ranges[i].info);
		free(code->ranges[i].targets);
	}
	free(code->ranges);
	free(code);
}
