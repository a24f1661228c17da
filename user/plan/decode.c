// SPDX-License-Identifier: BSD-2-Clause
#include "plan/decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/quick_decode.h"

/* One byte per byte of code: instruction length, class, branch target. */
#define LENGTH_MASK 0x0f
#define CLASS_SHIFT 4
#define CLASS_MASK 0x70
#define TARGET_BIT 0x80

#define MODRM_SP 4 /* register number of RSP; as rm of a memory operand it means SIB */
#define MODRM_BP 5

struct range {
	uint64_t addr, size;
	const uint8_t *bytes;
	uint8_t *info;
};

struct kx_code {
	ZydisDecoder decoder;
	struct range *ranges; /* executable segments, few */
	size_t nranges;
};

static struct range *find_range(const struct kx_code *code, uint64_t addr)
{
	for (size_t i = 0; i < code->nranges; i++) {
		struct range *r = &code->ranges[i];

		if (addr - r->addr < r->size)
			return r;
	}
	return NULL;
}

static uint8_t info_at(const struct kx_code *code, uint64_t addr)
{
	const struct range *r = find_range(code, addr);

	return r ? r->info[addr - r->addr] : 0;
}

unsigned kx_code_length(const struct kx_code *code, uint64_t addr)
{
	return info_at(code, addr) & LENGTH_MASK;
}

const uint8_t *kx_code_bytes(const struct kx_code *code, uint64_t addr, unsigned *length)
{
	const struct range *r = find_range(code, addr);

	*length = r ? r->info[addr - r->addr] & LENGTH_MASK : 0;
	return *length && addr - r->addr + *length <= r->size ? r->bytes + (addr - r->addr) : NULL;
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
	return (enum kx_insn_class)((info_at(code, addr) & CLASS_MASK) >> CLASS_SHIFT);
}

bool kx_code_is_target(const struct kx_code *code, uint64_t addr)
{
	return info_at(code, addr) & TARGET_BIT;
}

void kx_code_add_target(struct kx_code *code, uint64_t addr)
{
	struct range *r = find_range(code, addr);

	if (r)
		r->info[addr - r->addr] |= TARGET_BIT;
}

static bool decode_in(const struct kx_code *code, const struct range *r, uint64_t addr,
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
	const struct range *r = find_range(code, addr);

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
	const struct range *r = find_range(code, addr);
	const uint8_t *b = r ? r->bytes + (addr - r->addr) : NULL;
	const unsigned length = kx_code_length(code, addr);
	struct kx_insn insn;
	int32_t near;

	if (!r)
		return false;
	/* The common forms are read right here: they are a fifth of all instructions, and
	 * looked at several times. */
	if (length == 2) {
		*target = addr + 2 + (uint64_t)(int64_t)(int8_t)b[1];
		*conditional = b[0] != 0xeb;
		return true;
	}
	if ((length == 5 && b[0] == 0xe9) || (length == 6 && b[0] == 0x0f)) {
		memcpy(&near, b + length - sizeof(near), sizeof(near));
		*target = addr + length + (uint64_t)(int64_t)near;
		*conditional = length == 6;
		return true;
	}
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

/* Target of the direct branch or call of @length bytes that kx_quick_decode has found. */
static uint64_t quick_target(uint64_t addr, const uint8_t *bytes, unsigned length)
{
	int32_t near;

	if (length == 2)
		return addr + length + (uint64_t)(int64_t)(int8_t)bytes[1];
	memcpy(&near, bytes + length - sizeof(near), sizeof(near));
	return addr + length + (uint64_t)(int64_t)near;
}

/* Decodes the instruction at @addr: its length, class, and where it branches to, 0 if nowhere. */
static unsigned decode_one(const struct kx_code *code, const struct range *r, uint64_t addr,
			   enum kx_insn_class *class, uint64_t *target)
{
	const uint8_t *bytes = r->bytes + (addr - r->addr);
	unsigned length = kx_quick_decode(bytes, r->size - (addr - r->addr), class);
	struct kx_insn insn;

	*target = 0;
	if (length) {
		if (*class == KX_INSN_BRANCH || (*class == KX_INSN_CALL && bytes[0] == 0xe8))
			*target = quick_target(addr, bytes, length);
		return length;
	}
	if (!decode_in(code, r, addr, &insn))
		return 0;
	*class = kx_insn_classify(&insn.z);
	if ((*class == KX_INSN_BRANCH || *class == KX_INSN_CALL ||
	     insn.z.mnemonic == ZYDIS_MNEMONIC_XBEGIN) &&
	    !kx_insn_target(&insn, target))
		*target = 0;
	return insn.z.length;
}

/*
 * Decodes [from, to). An instruction that an overlapping symbol has brought
 * already is stepped over.
 */
static void sweep(struct kx_code *code, uint64_t from, uint64_t to)
{
	struct range *r = find_range(code, from);
	uint64_t target;

	if (!r)
		return;
	if (to - r->addr > r->size)
		to = r->addr + r->size;
	while (from < to) {
		uint8_t *info = &r->info[from - r->addr];
		enum kx_insn_class class;
		unsigned length;

		if (*info & LENGTH_MASK) {
			from += *info & LENGTH_MASK;
			continue;
		}
		length = decode_one(code, r, from, &class, &target);
		if (!length) {
			*info |= KX_INSN_ODD << CLASS_SHIFT | 1;
			from++;
			continue;
		}
		*info |= (uint8_t)(class << CLASS_SHIFT) | (uint8_t)length;
		if (target)
			kx_code_add_target(code, target);
		from += length;
	}
}

/* Decodes what lies in [from, to) outside of all symbols. */
static void sweep_gaps(struct kx_code *code, const struct kx_symbols *syms, uint64_t from,
		       uint64_t to)
{
	for (size_t i = 0; i < syms->count && from < to; i++) {
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

/* Sections where there are any, since a segment may hold read-only data as well. */
static void sweep_rest(struct kx_code *code, struct kx_elf *elf, const struct kx_symbols *syms)
{
	Elf_Scn *scn = NULL;
	bool any = false;

	while ((scn = elf_nextscn(kx_elf_handle(elf), scn))) {
		Elf64_Shdr *sh = elf64_getshdr(scn);

		if (!sh || sh->sh_type == SHT_NOBITS || !(sh->sh_flags & SHF_EXECINSTR))
			continue;
		sweep_gaps(code, syms, sh->sh_addr, sh->sh_addr + sh->sh_size);
		any = true;
	}
	for (size_t i = 0; !any && i < code->nranges; i++)
		sweep_gaps(code, syms, code->ranges[i].addr,
			   code->ranges[i].addr + code->ranges[i].size);
}

int kx_code_new(struct kx_elf *elf, const struct kx_symbols *syms, struct kx_code **out,
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
	for (size_t i = 0; i < n; i++) {
		struct range *r = &code->ranges[code->nranges];

		if (!kx_elf_exec_segment(elf, i, &seg) || !seg.data || !seg.size)
			continue;
		*r = (struct range){ .addr = seg.addr, .size = seg.size, .bytes = seg.data };
		r->info = calloc(1, seg.size);
		if (!r->info)
			goto no_memory;
		code->nranges++;
	}
	for (size_t i = 0; i < syms->count; i++) {
		const struct kx_symbol *s = &syms->items[i];

		sweep(code, s->addr, s->addr + s->size);
		if (s->cold_addr)
			sweep(code, s->cold_addr, s->cold_addr + s->cold_size);
	}
	sweep_rest(code, elf, syms);
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
	for (size_t i = 0; i < code->nranges; i++)
		free(code->ranges[i].info);
	free(code->ranges);
	free(code);
}
