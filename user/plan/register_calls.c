// SPDX-License-Identifier: BSD-2-Clause
/* Calls of a function to an address in a register: see kx_decoded_function_calls and kx_decoded_function_leaks. */
#include "plan/decoded_function_internal.h"
#include "plan/register_use.h"

static bool goes_to(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops, ZydisRegister reg)
{
	return (z->meta.category == ZYDIS_CATEGORY_CALL || z->meta.category == ZYDIS_CATEGORY_UNCOND_BR) &&
	       ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[0].reg.value == reg;
}

int kx_decoded_function_calls(const struct kx_decoded_function *f, ZydisRegister reg, int (*each)(void *ctx, uint64_t addr),
			      void *ctx)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	int code = 0;

	for (uint64_t at = 0; !code && at < f->to - f->from; at++)
		if (f->marks[at] & KX_DECODED_START && kx_decoded_function_decode(f, at, &z, ops) && goes_to(&z, ops, reg))
			code = each(ctx, f->from + at);
	return code;
}

#define MOST 256 /* branches on the way that are still to be followed */

struct walk {
	struct kx_decoded_function *f;
	uint64_t todo[MOST]; /* offsets */
	size_t n;
};

/* Follows the direct branch @z at offset @at; false if it leaves the function or there is no room. */
static bool branch(struct walk *w, uint64_t at, const ZydisDecodedInstruction *z)
{
	const struct kx_insn insn = { .addr = w->f->from + at, .z = *z };
	uint64_t target;

	if (!kx_insn_target(&insn, &target) || !kx_decoded_function_has(w->f, target) || w->n == MOST)
		return false;
	w->todo[w->n++] = target - w->f->from;
	return true;
}

/* What the instruction does with the register, and how it goes on. */
enum step {
	ON,   /* with the next instruction */
	ENDS, /* the register has another value then, or the branch was added */
	LEAKS,
};

static enum step step(struct walk *w, uint64_t at, ZydisRegister reg, unsigned *length)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	enum kx_insn_class class;

	if (!kx_decoded_function_decode(w->f, at, &z, ops))
		return LEAKS;
	*length = z.length;
	class = kx_insn_classify(&z);
	if (goes_to(&z, ops, reg))
		return class == KX_INSN_CALL && kx_is_preserved(reg) ? ON : ENDS;
	if (kx_reads_register(&z, ops, reg) && z.mnemonic != ZYDIS_MNEMONIC_PUSH && z.mnemonic != ZYDIS_MNEMONIC_CMP &&
	    z.mnemonic != ZYDIS_MNEMONIC_TEST)
		return LEAKS;
	if (kx_writes_register(&z, ops, reg) || class == KX_INSN_RET || (class == KX_INSN_CALL && !kx_is_preserved(reg)))
		return ENDS;
	if (class == KX_INSN_BRANCH && !branch(w, at, &z))
		return LEAKS;
	if (kx_falls_through(&z))
		return ON;
	/* a switch goes to places that are not known */
	return class == KX_INSN_JUMP ? LEAKS : ENDS;
}

bool kx_decoded_function_leaks(struct kx_decoded_function *f, uint64_t addr, ZydisRegister reg)
{
	const uint64_t size = f->to - f->from, first = addr - f->from;
	struct walk w = { .f = f };
	unsigned length = 0;

	for (uint64_t at = 0; at < size; at++)
		f->marks[at] &= (uint8_t)~KX_DECODED_VISITED;
	for (uint64_t at = first + 1; at < size && !w.n; at++)
		if (f->marks[at] & KX_DECODED_START)
			w.todo[w.n++] = at;
	while (w.n) {
		uint64_t at = w.todo[--w.n];
		enum step s = ON;

		for (; s == ON && at < size && !(f->marks[at] & KX_DECODED_VISITED); at += length) {
			f->marks[at] |= KX_DECODED_VISITED;
			s = step(&w, at, reg, &length);
			if (s == LEAKS)
				return true;
		}
	}
	return false;
}
