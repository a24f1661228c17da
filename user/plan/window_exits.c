// SPDX-License-Identifier: BSD-2-Clause
#include "plan/window_exits.h"

/* Bytes of a part that is looked through. */
#define PART_MOST (256u << 10)

/* What code without a symbol does that a function jumps to. */
enum part {
	PART_UNKNOWN, /* it cannot be read, or both of these */
	PART_CLOSED,  /* goes back into the function or nowhere */
	PART_OTHER,   /* never goes back: another function */
};

struct view {
	const struct kx_function_code *f;
	const struct kx_landing_map *landings;
	/* many jumps lead to one part */
	const struct kx_landing_part *known;
	enum part verdict; /* on that */
};

static bool is_inside(const struct kx_function_code *f, uint64_t addr)
{
	return kx_function_contains(f, addr) && addr != f->parts[0].from;
}

static enum part look_through(const struct view *v, const struct kx_landing_part *part)
{
	const struct kx_code_range *r = kx_code_range(v->f->code, part->from);
	bool leaves = false, back = false;
	uint64_t target;

	if (!r || part->to - r->addr > r->size || part->to - part->from > PART_MOST)
		return PART_UNKNOWN;
	for (uint64_t at = part->from; at < part->to;) {
		const unsigned info = kx_code_info(v->f->code, r, at, &target), class = info >> KX_INFO_CLASS_SHIFT;

		if (!info || kx_landing_is_owned(v->landings, at))
			return PART_UNKNOWN;
		if (class == KX_INSN_RET || class == KX_INSN_JUMP)
			leaves = true;
		else if (class == KX_INSN_BRANCH && is_inside(v->f, target))
			back = true;
		else if (class == KX_INSN_BRANCH && (target < part->from || target >= part->to))
			leaves = true;
		at += info & KX_INFO_LENGTH;
	}
	return !leaves ? PART_CLOSED : !back ? PART_OTHER : PART_UNKNOWN;
}

/* The part without a symbol that holds @addr. */
static enum part part_at(struct view *v, uint64_t addr)
{
	const struct kx_landing_part *part = kx_landing_part(v->landings, addr);

	if (!part)
		return PART_UNKNOWN;
	if (part != v->known)
		v->verdict = look_through(v, part);
	v->known = part;
	return v->verdict;
}

/* Whether the way out @way, an exit for the planner of probes or not, is one. */
static enum kx_window_refusal judge(struct view *v, const struct kx_stack *stack, const struct kx_way_out *way, bool *is_exit)
{
	const bool is_branch = way->class == KX_INSN_BRANCH;
	int32_t depth = 0;
	const bool known = way->class == KX_INSN_RET || kx_stack_depth(stack, way->addr, &depth);
	enum part part = PART_OTHER;

	if (!*is_exit && !is_branch)
		return KX_WINDOW_OK; /* a switch */
	if (is_branch && !kx_landing_is_owned(v->landings, way->target) && kx_landing_code(v->landings, way->target)) {
		part = part_at(v, way->target);
		if (part == PART_CLOSED) {
			*is_exit = false;
			return KX_WINDOW_OK;
		}
	}
	if (!*is_exit || part == PART_UNKNOWN)
		return KX_WINDOW_PARTS;
	return known && !depth ? KX_WINDOW_OK : KX_WINDOW_FRAME;
}

/* Index of the exit at @addr; exits->nexits if there is none. */
static size_t find(const struct kx_plan *exits, uint64_t addr)
{
	size_t i = 0;

	while (i < exits->nexits && exits->exits[i].addr != addr)
		i++;
	return i;
}

/* Whether landing pads and tables lead only to parts that the function is never left from. */
static bool is_closed(struct view *v)
{
	for (size_t i = 0; i < v->f->nparts; i++) {
		size_t n;
		const struct kx_landing_outside *o = kx_landing_outside(v->landings, v->f->parts[i].from, &n);

		for (size_t k = 0; k < n; k++)
			if (!kx_function_contains(v->f, o[k].addr) && part_at(v, o[k].addr) != PART_CLOSED)
				return false;
	}
	return true;
}

enum kx_window_refusal kx_window_exits(const struct kx_function_code *f, const struct kx_stack *stack,
				       const struct kx_landing_map *landings, struct kx_plan *exits)
{
	struct view v = { .f = f, .landings = landings };

	if (!is_closed(&v))
		return KX_WINDOW_PARTS;
	for (size_t i = 0; i < f->nways; i++) {
		const size_t at = find(exits, f->ways[i].addr);
		bool is_exit = at < exits->nexits;
		const enum kx_window_refusal why = judge(&v, stack, &f->ways[i], &is_exit);

		if (why)
			return why;
		if (is_exit || at == exits->nexits)
			continue;
		exits->nexits--;
		for (size_t k = at; k < exits->nexits; k++)
			exits->exits[k] = exits->exits[k + 1];
	}
	return KX_WINDOW_OK;
}
