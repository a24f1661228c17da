// SPDX-License-Identifier: BSD-2-Clause
/*
 * How deep the stack is at each jump of a function. Compilers keep the depth
 * constant for each instruction, so two walks in address order, with the
 * depths that branches carry forward, find nearly all of them. The second walk
 * follows only the blocks that a later branch has brought another state than
 * the first walk had there: the rest would come out the same.
 */
#include <stdlib.h>

#include "plan/function.h"
#include "plan/stack_step.h"
#include "plan/walk.h"

/* What is known of an address. */
enum known {
	PASSED = 0, /* @state is what the first walk had there, no more */
	CARRIED,    /* a branch carried @state there, or it is that at the branch itself */
	SETTLED,    /* the same, and the first walk had it there, too */
};

#define SLOTS_A_JUMP 2 /* at most, rarely more than one */
#define NOTHING_ELSE (KX_INSN_ODD + 1) /* than targets: above all classes */

struct slot {
	uint64_t addr; /* 0: free */
	struct kx_stack_state state;
	enum known known;
};

struct kx_stack {
	size_t mask;
	size_t room;  /* slots that are neither used nor needed by jumps to come */
	bool changed; /* what a branch has carried back differs from what the first walk had there */
	struct slot slots[];
};

static struct slot *slot_of(struct kx_stack *s, uint64_t addr)
{
	size_t i = (addr * 0x9e3779b97f4a7c15u >> 32) & s->mask;

	while (s->slots[i].addr && s->slots[i].addr != addr)
		i = (i + 1) & s->mask;
	return &s->slots[i];
}

/* Whether both mean the same. */
static bool is_same(const struct kx_stack_state *a, const struct kx_stack_state *b)
{
	return a->depth_known == b->depth_known && (!a->depth_known || a->depth == b->depth) &&
	       a->frame_known == b->frame_known && (!a->frame_known || a->frame == b->frame);
}

static bool is_known(const struct slot *slot)
{
	return slot->addr && slot->known != PASSED && slot->state.depth_known;
}

static void remember(struct kx_stack *s, uint64_t addr, const struct kx_stack_state *st)
{
	struct slot *slot = slot_of(s, addr);
	enum known known = CARRIED;

	if (is_known(slot))
		return;
	if (!slot->addr) {
		s->room--;
	} else if (slot->known == PASSED) {
		if (!st->depth_known)
			return;
		if (is_same(st, &slot->state))
			known = SETTLED;
		else
			s->changed = true;
	}
	*slot = (struct slot){ .addr = addr, .state = *st, .known = known };
}

bool kx_stack_depth(const struct kx_stack *s, uint64_t addr, int32_t *depth)
{
	const struct slot *slot = slot_of((struct kx_stack *)s, addr);

	if (!is_known(slot))
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

	s->room += SLOTS_A_JUMP;
	if (!kx_range_branch(r, pos, &target, &conditional) &&
	    !kx_code_branch(f->code, pos, &target, &conditional)) {
		remember(s, pos, st);
		return true;
	}
	inside = kx_function_contains(f, target);
	/* of others than ways out nobody asks for the depth */
	if (!inside || target == f->parts[0].from || kx_range_is_target(r, pos))
		remember(s, pos, st);
	if (inside)
		remember(s, target, st);
	return conditional;
}

/* The instruction at @pos. Returns whether the one behind it may be next; else nothing is known there. */
static inline bool step(const struct kx_function_code *f, struct kx_stack *s, const struct kx_code_range *r, uint64_t pos,
			struct kx_stack_state *st, bool *touches)
{
	bool goes_on = true;

	switch (kx_range_class(r, pos)) {
	case KX_INSN_PLAIN:
	case KX_INSN_CALL:
	case KX_INSN_SYSTEM:
	case KX_INSN_ODD:
		break;
	case KX_INSN_STACK:
		*touches |= kx_stack_step(f->code, st, pos, kx_range_bytes(r, pos), kx_range_length(r, pos));
		break;
	case KX_INSN_BRANCH:
		goes_on = follow_branch(f, s, r, pos, st);
		break;
	case KX_INSN_JUMP:
		s->room += SLOTS_A_JUMP;
		remember(s, pos, st);
		goes_on = false;
		break;
	case KX_INSN_RET:
		goes_on = false;
		break;
	}
	if (!goes_on)
		*st = (struct kx_stack_state){ 0 };
	return goes_on;
}

/* The first walk comes to @pos, where branches land. */
static void pass(struct kx_stack *s, uint64_t pos, struct kx_stack_state *st)
{
	struct slot *slot = slot_of(s, pos);

	/* What a branch carries is surer than falling through, which may be behind a call that never returns. */
	if (is_known(slot)) {
		*st = slot->state;
		slot->known = SETTLED;
		return;
	}
	if (!slot->addr && !s->room) {
		s->changed = true;
		return;
	}
	s->room -= !slot->addr;
	*slot = (struct slot){ .addr = pos, .state = *st, .known = PASSED };
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
		if (kx_range_is_target(r, pos))
			pass(s, pos, &st);
		step(f, s, r, pos, &st, &touches);
	}
	return touches;
}

/* The second walk comes to @pos, where branches land. @same, and returned: whether the first walk was there with this state. */
static bool pass_again(struct kx_stack *s, uint64_t pos, struct kx_stack_state *st, bool same)
{
	const struct slot *slot = slot_of(s, pos);

	if (is_known(slot)) {
		*st = slot->state;
		return slot->known == SETTLED;
	}
	return same || (slot->addr && slot->known == PASSED && is_same(st, &slot->state));
}

/* The second walk, which has the state of blocks reached only by a later backward jump. */
static bool walk_again(const struct kx_function_code *f, struct kx_stack *s, const struct kx_part *part)
{
	const struct kx_code_range *r = part->range;
	struct kx_stack_state st = { 0 };
	bool touches = false, same = true;
	struct kx_walk w;
	uint64_t pos;

	kx_walk_begin(&w, part, NOTHING_ELSE, true);
	while (kx_walk_next(&w, &pos)) {
		const bool was_same = same;

		if (kx_range_is_target(r, pos))
			same = pass_again(s, pos, &st, same);
		if (!same)
			same = !step(f, s, r, pos, &st, &touches);
		if (same != was_same)
			kx_walk_change(&w, pos, same ? NOTHING_ELSE : KX_INSN_STACK);
	}
	return touches;
}

struct kx_stack *kx_stack_follow(const struct kx_function_code *f, bool *touches_return)
{
	const size_t most = SLOTS_A_JUMP * ((size_t)f->branches + f->jumps);
	size_t size = 16;
	struct kx_stack *s;

	while (size <= most)
		size *= 2;
	s = calloc(1, sizeof(*s) + size * sizeof(s->slots[0]));
	if (!s)
		return NULL;
	s->mask = size - 1;
	s->room = size - 1 - most;
	*touches_return = false;
	for (size_t k = 0; k < f->nparts; k++)
		*touches_return |= walk(f, s, &f->parts[k], k == 0);
	for (size_t k = 0; k < f->nparts && s->changed; k++)
		*touches_return |= walk_again(f, s, &f->parts[k]);
	return s;
}
