// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whether an indirect jump is a tail call or stays in its function. A tail call needs the
 * stack as it was at entry; otherwise the source of the target address decides.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/function.h"

static ZydisRegister full(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

/* Eight bytes of the file that are loaded at @vaddr. */
static bool read_word(struct kx_elf *elf, uint64_t vaddr, uint64_t *word)
{
	size_t n = 0, size = 0;
	const char *file = elf_rawfile(kx_elf_handle(elf), &size);
	Elf64_Phdr *ph = elf64_getphdr(kx_elf_handle(elf));

	if (!file || !ph || elf_getphdrnum(kx_elf_handle(elf), &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		const uint64_t at = vaddr - ph[i].p_vaddr;

		if (ph[i].p_type != PT_LOAD || vaddr < ph[i].p_vaddr || at >= ph[i].p_filesz ||
		    ph[i].p_filesz - at < sizeof(*word) || ph[i].p_offset > size ||
		    size - ph[i].p_offset < at + sizeof(*word))
			continue;
		memcpy(word, file + ph[i].p_offset + at, sizeof(*word));
		return true;
	}
	return false;
}

/* A target that is read from memory. */
static enum kx_jump from_memory(const struct kx_function_code *f, struct kx_elf *elf,
				const ZydisDecodedOperand *op)
{
	uint64_t word;

	/* A GOT slot, a pointer in a variable, a slot of a vtable. */
	if (op->mem.index == ZYDIS_REGISTER_NONE)
		return KX_JUMP_TAIL;
	/* A table at a fixed address: its first word shows whether it belongs to this function. */
	if (op->mem.base == ZYDIS_REGISTER_NONE && op->mem.scale == 8 &&
	    read_word(elf, (uint64_t)op->mem.disp.value, &word) && word)
		return kx_function_contains(f, word) ? KX_JUMP_TABLE : KX_JUMP_TAIL;
	return KX_JUMP_UNCLEAR;
}

static bool is_argument(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_RDI || reg == ZYDIS_REGISTER_RSI ||
	       reg == ZYDIS_REGISTER_RDX || reg == ZYDIS_REGISTER_RCX ||
	       reg == ZYDIS_REGISTER_R8 || reg == ZYDIS_REGISTER_R9;
}

static bool writes(const struct kx_insn *insn, const ZydisDecodedOperand *ops, ZydisRegister reg)
{
	for (unsigned i = 0; i < insn->z.operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    full(ops[i].reg.value) == reg)
			return true;
	return false;
}

/* How far back the instruction is looked for that loads a jump's register. */
#define LOOK_BACK 16

/* Whether execution never continues after @insn. */
static bool ends_block(const struct kx_insn *insn)
{
	return insn->z.meta.category == ZYDIS_CATEGORY_RET ||
	       insn->z.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
}

/* Whether @insn gives up stack, as an epilogue does. */
static bool is_epilogue(const struct kx_insn *insn, const ZydisDecodedOperand *ops)
{
	return insn->z.mnemonic == ZYDIS_MNEMONIC_POP || insn->z.mnemonic == ZYDIS_MNEMONIC_LEAVE ||
	       (insn->z.mnemonic == ZYDIS_MNEMONIC_ADD &&
		ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		ops[0].reg.value == ZYDIS_REGISTER_RSP);
}

/*
 * A target in @reg: looks back in the block for the instruction that put it there. A switch
 * reads its table right before it jumps. @level: the stack is known to be as it was at entry.
 */
static enum kx_jump from_register(const struct kx_function_code *f, struct kx_elf *elf,
				  ZydisRegister reg, uint64_t jump, bool level)
{
	const enum kx_jump if_level = level ? KX_JUMP_TAIL : KX_JUMP_UNCLEAR;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t at = jump;
	struct kx_insn insn;

	for (int i = 0; i < LOOK_BACK; i++) {
		if (at == f->parts[0].from) /* a function pointer that was passed in */
			return is_argument(reg) ? KX_JUMP_TAIL : KX_JUMP_UNCLEAR;
		at = kx_code_previous(f->code, at);
		if (!kx_function_contains(f, at) || !kx_code_decode(f->code, at, &insn) ||
		    !kx_insn_operands(f->code, &insn, ops))
			return KX_JUMP_UNCLEAR;
		if (ends_block(&insn) || is_epilogue(&insn, ops))
			return if_level;
		if (!writes(&insn, ops, reg))
			continue;
		switch (insn.z.mnemonic) {
		case ZYDIS_MNEMONIC_ADD: /* table base plus 32-bit offset: switches only */
			return ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER ? KX_JUMP_TABLE :
									    KX_JUMP_UNCLEAR;
		case ZYDIS_MNEMONIC_LEA: /* the same sum, as assembler code has it */
			return ops[1].mem.index != ZYDIS_REGISTER_NONE ? KX_JUMP_TABLE :
									 KX_JUMP_UNCLEAR;
		case ZYDIS_MNEMONIC_ROR: /* libc keeps its function pointers encrypted */
		case ZYDIS_MNEMONIC_XOR:
			break;
		case ZYDIS_MNEMONIC_MOV:
			if (ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY)
				return from_memory(f, elf, &ops[1]);
			if (ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
				return KX_JUMP_UNCLEAR;
			reg = full(ops[1].reg.value);
			break;
		default:
			return KX_JUMP_UNCLEAR;
		}
	}
	return if_level;
}

static enum kx_jump classify(const struct kx_function_code *f, const struct kx_stack *s,
			     struct kx_elf *elf, uint64_t addr)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	struct kx_insn insn;
	int32_t depth = 0;
	bool known;

	if (!kx_code_decode(f->code, addr, &insn))
		return KX_JUMP_UNCLEAR;
	/* Only switches jump without tracking: a callee must start with endbr64. */
	if (insn.z.attributes & ZYDIS_ATTRIB_HAS_NOTRACK)
		return KX_JUMP_TABLE;
	known = kx_stack_depth(s, addr, &depth);
	if (depth != 0)
		return KX_JUMP_TABLE;
	if (!kx_insn_operands(f->code, &insn, ops))
		return KX_JUMP_UNCLEAR;
	if (ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
		return from_memory(f, elf, &ops[0]);
	if (ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		return from_register(f, elf, full(ops[0].reg.value), addr, known);
	return KX_JUMP_UNCLEAR;
}

int kx_jumps_classify(const struct kx_function_code *f, const struct kx_stack *s, struct kx_elf *elf,
		      struct kx_jumps *out, struct kx_err *err)
{
	size_t n = 0;

	*out = (struct kx_jumps){ 0 };
	if (!f->jumps)
		return 0;
	out->kinds = calloc(f->jumps, sizeof(*out->kinds));
	if (!out->kinds)
		return kx_err_set(err, -ENOMEM, "out of memory while planning a function of %s",
				  kx_elf_path(elf));
	for (size_t i = 0; i < f->nways; i++) {
		if (f->ways[i].class != KX_INSN_JUMP)
			continue;
		out->kinds[n] = classify(f, s, elf, f->ways[i].addr);
		out->any_inside |= out->kinds[n] != KX_JUMP_TAIL;
		out->any_outside |= out->kinds[n] != KX_JUMP_TABLE;
		n++;
	}
	return 0;
}

void kx_jumps_free(struct kx_jumps *jumps)
{
	free(jumps->kinds);
	*jumps = (struct kx_jumps){ 0 };
}
