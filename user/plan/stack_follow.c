// SPDX-License-Identifier: BSD-2-Clause
/*
 * How deep the stack is at each jump of a function. Compilers keep the depth
 * constant for each instruction, so two walks in address order, with the
 * depths that branches carry forward, find nearly all of them.
 */
#include <stdlib.h>

#include "plan/function.h"
#include "plan/stack_step.h"

struct slot {
	uint64_t addr; /* 0: free */
	struct kx_stack_state state;
};

struct kx_stack {
	size_t mask;
	bool unknown; /* some jump was met before the depth there was known */
	struct slot slots[];
};

static struct slot *slot_of(struct kx_stack *s, uint64_t addr)
{
	size_t i = (addr * 0x9e3779b97f4a7c15u >> 32) & s->mask;

	while (s->slots[i].addr && s->slots[i].addr != addr)
		i = (i + 1) & s->mask;
	return &s->slots[i];
}

static void remember(struct kx_stack *s, uint64_t addr, const struct kx_stack_state *st)
{
	struct slot *slot = slot_of(s, addr);

	if (slot->addr && slot->state.depth_known)
		return;
	s->unknown |= !st->depth_known;
	*slot = (struct slot){ .addr = addr, .state = *st };
}

bool kx_stack_depth(const struct kx_stack *s, uint64_t addr, int32_t *depth)
{
	const struct slot *slot = slot_of((struct kx_stack *)s, addr);

	if (!slot->addr || !slot->state.depth_known)
		return false;
	*depth = slot->state.depth;
	return true;
}

static bool walk(const struct kx_function_code *f, struct kx_stack *s, const struct kx_part *part,
		 bool is_entry)
{
	struct kx_stack_state st = { .depth_known = is_entry };
	bool touches = false;
	bool conditional;
	uint64_t target;

	for (uint64_t pos = part->from; pos < part->to; pos += kx_code_length(f->code, pos)) {
		const enum kx_insn_class class = kx_code_class(f->code, pos);

		if (kx_code_is_target(f->code, pos)) {
			/* What a branch carries is surer than falling through, which may
			 * be behind a call that never returns. */
			const struct slot *slot = slot_of(s, pos);

			if (slot->addr && slot->state.depth_known)
				st = slot->state;
		}
		switch (class) {
		case KX_INSN_PLAIN:
		case KX_INSN_CALL:
		case KX_INSN_SYSTEM:
		case KX_INSN_ODD:
			break;
		case KX_INSN_STACK:
			touches |= kx_stack_step(f->code, &st, pos);
			break;
		case KX_INSN_BRANCH:
			remember(s, pos, &st);
			if (!kx_code_branch(f->code, pos, &target, &conditional))
				break;
			if (kx_function_contains(f, target))
				remember(s, target, &st);
			if (!conditional)
				st = (struct kx_stack_state){ 0 };
			break;
		case KX_INSN_JUMP:
			remember(s, pos, &st);
			st = (struct kx_stack_state){ 0 };
			break;
		case KX_INSN_RET:
			st = (struct kx_stack_state){ 0 };
			break;
		}
	}
	return touches;
}

struct kx_stack *kx_stack_follow(const struct kx_function_code *f, bool *touches_return)
{
	size_t size = 16;
	struct kx_stack *s;

	while (size < 4 * ((size_t)f->branches + f->jumps))
		size *= 2;
	s = calloc(1, sizeof(*s) + size * sizeof(s->slots[0]));
	if (!s)
		return NULL;
	s->mask = size - 1;
	*touches_return = false;
	/* The second walk has the state of blocks reached only by a later backward jump. */
	for (int i = 0; i == 0 || (i == 1 && s->unknown); i++)
		for (size_t k = 0; k < f->nparts; k++)
			*touches_return |= walk(f, s, &f->parts[k], k == 0);
	return s;
}
