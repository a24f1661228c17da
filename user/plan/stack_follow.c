// SPDX-License-Identifier: BSD-2-Clause
/*
 * How deep the stack is at each jump of a function. Compilers keep the depth
 * constant for each instruction, so two walks in address order, with the
 * depths that branches carry forward, find nearly all of them.
 */
#include <stdlib.h>

#include "plan/function.h"
#include "plan/stack_step.h"
#include "plan/walk.h"

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

/* The direct jump at @pos: what it carries to its target. Returns whether it may fall through. */
static bool follow_branch(const struct kx_function_code *f, struct kx_stack *s, const struct kx_code_range *r,
			  uint64_t pos, const struct kx_stack_state *st)
{
	bool conditional, inside;
	uint64_t target;

	if (!kx_range_branch(r, pos, &target, &conditional) &&
	    !kx_code_branch(f->code, pos, &target, &conditional)) {
		remember(s, pos, st);
		return true;
	}
	inside = kx_function_contains(f, target);
	/* of others than ways out nobody asks for the depth */
	if (!inside || target == f->parts[0].from || kx_range_is_target(r, pos))
		remember(s, pos, st);
	else
		s->unknown |= !st->depth_known;
	if (inside)
		remember(s, target, st);
	return conditional;
}

static bool walk(const struct kx_function_code *f, struct kx_stack *s, const struct kx_part *part,
		 bool is_entry)
{
	const struct kx_code_range *r = part->range;
	struct kx_stack_state st = { .depth_known = is_entry };
	bool touches = false;
	struct kx_walk w;
	uint64_t pos;

	kx_walk_begin(&w, part, KX_INSN_STACK, true);
	while (kx_walk_next(&w, &pos)) {
		const enum kx_insn_class class = kx_range_class(r, pos);

		if (kx_range_is_target(r, pos)) {
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
			touches |= kx_stack_step(f->code, &st, pos, kx_range_bytes(r, pos), kx_range_length(r, pos));
			break;
		case KX_INSN_BRANCH:
			if (!follow_branch(f, s, r, pos, &st))
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
	/* at most two slots a jump, rarely more than one */
	const size_t most = 2 * ((size_t)f->branches + f->jumps);
	size_t size = 16;
	struct kx_stack *s;

	while (size <= most)
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
