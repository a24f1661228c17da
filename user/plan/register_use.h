// SPDX-License-Identifier: BSD-2-Clause
/* What decoded instructions do to registers, and what runs behind them. */
#ifndef KX_REGISTER_USE_H
#define KX_REGISTER_USE_H

#include <Zydis/Zydis.h>
#include <stdbool.h>

#include "plan/decode.h"

static inline ZydisRegister kx_full_register(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

/* Whether it changes any part of @reg, a register of 64 bits. A system call changes rax, too. */
static inline bool kx_writes_register(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops, ZydisRegister reg)
{
	if (z->mnemonic == ZYDIS_MNEMONIC_SYSCALL && reg == ZYDIS_REGISTER_RAX)
		return true;
	for (unsigned i = 0; i < z->operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    kx_full_register(ops[i].reg.value) == reg)
			return true;
	return false;
}

/* Whether it reads any part of @reg, alone or in an address. */
static inline bool kx_reads_register(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops, ZydisRegister reg)
{
	for (unsigned i = 0; i < z->operand_count; i++)
		if ((ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && kx_full_register(ops[i].reg.value) == reg &&
		     (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ)) ||
		    (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		     (kx_full_register(ops[i].mem.base) == reg || kx_full_register(ops[i].mem.index) == reg)))
			return true;
	return false;
}

/* Whether a function that is called leaves the register as it is (System V ABI for x86-64, 3.2.1). */
static inline bool kx_is_preserved(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_RBX || reg == ZYDIS_REGISTER_RBP ||
	       (reg >= ZYDIS_REGISTER_R12 && reg <= ZYDIS_REGISTER_R15);
}

static inline bool kx_is_nop(const ZydisDecodedInstruction *z)
{
	return z->meta.category == ZYDIS_CATEGORY_NOP || z->meta.category == ZYDIS_CATEGORY_WIDENOP;
}

/* Whether what is behind @z may run after it. */
static inline bool kx_falls_through(const ZydisDecodedInstruction *z)
{
	switch (kx_insn_classify(z)) {
	case KX_INSN_PLAIN:
	case KX_INSN_STACK:
	case KX_INSN_CALL:
		return true;
	case KX_INSN_BRANCH:
		return z->meta.category == ZYDIS_CATEGORY_COND_BR;
	case KX_INSN_SYSTEM:
		return z->mnemonic == ZYDIS_MNEMONIC_SYSCALL;
	case KX_INSN_ODD:
		return kx_is_nop(z);
	default:
		return false;
	}
}

#endif
