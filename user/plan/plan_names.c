// SPDX-License-Identifier: BSD-2-Clause
/* Words for what plans say. */
#include "plan/plan.h"

const char *kx_cost_name(enum kx_cost cost)
{
	static const char *const names[] = { "nop5", "emulated", "stepped", "kernel" };

	return names[cost];
}

const char *kx_exits_name(enum kx_exits kind)
{
	static const char *const names[] = { "auto", "return", "instruction", "none" };

	return names[kind];
}

const char *kx_insn_kind_name(enum kx_insn_kind kind)
{
	static const char *const names[KX_INSN_KINDS] = {
		[KX_INSN_NOP] = "nop",
		[KX_INSN_PUSH] = "push",
		[KX_INSN_JUMP_NEAR] = "jmp",
		[KX_INSN_CONDITIONAL] = "jcc",
		[KX_INSN_CALL_NEAR] = "call",
		[KX_INSN_LONG_NOP] = "long nop",
		[KX_INSN_MOVE_FRAME] = "mov %rsp,%rbp",
		[KX_INSN_SUB_STACK] = "sub $n,%rsp",
	};

	return names[kind];
}
