// SPDX-License-Identifier: BSD-2-Clause
#include "plan/move_exits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan_exits.h"
#include "plan/probe_cost.h"
#include "plan/simple_insn.h"
#include "plan/stack_step.h"
#include "plan/walk.h"

/* Between the jump and the return instruction; longer ones take time that is missing in the call's duration. */
#define MAX_BEHIND 24
#define MAX_PLACES 16

/* A direct branch inside the function. */
struct edge {
	uint64_t from, to;
};

/* A branch behind which the function returns. */
struct place {
	uint64_t addr;
	uint16_t frame;
	bool taken, not_taken; /* by which of its ways */
	bool conditional;
	uint8_t condition;
};

struct moves {
	const struct kx_function_code *f;
	bool results; /* nothing behind a place may write rax or rdx */
	struct edge *edges;
	size_t nedges;
	struct place places[MAX_PLACES];
	size_t nplaces;
};

/* Adds the branch at @pos. False if a call lands inside the function: then a return instruction may end only that. */
static bool note_edge(struct moves *m, const struct kx_code_range *r, uint64_t pos)
{
	const uint64_t entry = m->f->parts[0].from;
	uint64_t target;
	bool conditional;

	if (kx_range_class(r, pos) == KX_INSN_CALL) {
		if (!kx_range_call(r, pos, &target))
			kx_code_info(m->f->code, r, pos, &target);
		return !target || target == entry || !kx_function_contains(m->f, target);
	}
	if (kx_range_class(r, pos) != KX_INSN_BRANCH)
		return true;
	if (!kx_range_branch(r, pos, &target, &conditional) &&
	    !kx_code_branch(m->f->code, pos, &target, &conditional))
		return false;
	if (target != entry && kx_function_contains(m->f, target))
		m->edges[m->nedges++] = (struct edge){ pos, target };
	return true;
}

static bool note_edges(struct moves *m)
{
	for (size_t i = 0; i < m->f->nparts; i++) {
		const struct kx_part *part = &m->f->parts[i];
		struct kx_walk w;
		uint64_t pos;

		kx_walk_begin(&w, part, KX_INSN_BRANCH, false);
		while (kx_walk_next(&w, &pos))
			if (!note_edge(m, part->range, pos))
				return false;
	}
	return true;
}

/* How far the stack pointer is below its value at the entry, at @addr, from which straight on @ret is reached. */
static bool frame_before(const struct moves *m, uint64_t addr, uint64_t ret, uint16_t *frame)
{
	struct kx_stack_state st = { .depth_known = true };
	unsigned length;

	for (uint64_t pos = addr; pos < ret; pos += length) {
		const struct kx_code_range *r = kx_code_range(m->f->code, pos);

		length = kx_range_length(r, pos);
		if (kx_range_class(r, pos) == KX_INSN_STACK)
			kx_stack_step(m->f->code, &st, pos, kx_range_bytes(r, pos), length);
	}
	*frame = (uint16_t)-st.depth;
	return st.depth_known && st.depth <= 0 && -st.depth <= KX_PLAN_MAX_EXIT_FRAME && st.depth % 8 == 0;
}

static bool is_way_out(const struct kx_function_code *f, uint64_t addr)
{
	for (size_t i = 0; i < f->nways; i++)
		if (f->ways[i].addr == addr)
			return true;
	return false;
}

/* Fills the new place @p with the branch at @addr, which the kernel must emulate. */
static bool make_place(const struct moves *m, uint64_t addr, uint16_t frame, struct place *p)
{
	const struct kx_code_range *r = kx_code_range(m->f->code, addr);
	const uint8_t *b = kx_range_bytes(r, addr);
	const unsigned length = kx_range_length(r, addr);
	enum kx_insn_kind kind;
	struct kx_insn insn;
	enum kx_cost cost;

	*p = (struct place){ .addr = addr, .frame = frame };
	if (kx_is_short_branch(b, length)) {
		p->conditional = b[0] >> 4 == 7;
		p->condition = p->conditional ? b[0] & 15 : 0;
		return true;
	}
	if (!kx_code_decode(m->f->code, addr, &insn))
		return false;
	kind = kx_insn_kind(&insn);
	p->conditional = kind == KX_INSN_CONDITIONAL;
	p->condition = insn.z.opcode & 15;
	return (p->conditional || kind == KX_INSN_JUMP_NEAR) && kx_probe_cost(&insn, NULL, &cost) &&
	       cost != KX_COST_STEPPED;
}

/* The branch at @addr as a place, from which @behind is the next instruction of those that end in @ret. */
static bool add_place(struct moves *m, uint64_t addr, bool taken, uint64_t behind, uint64_t ret)
{
	struct place *p = m->places;
	uint16_t frame;

	if (!frame_before(m, behind, ret, &frame) || is_way_out(m->f, addr))
		return false;
	while (p < m->places + m->nplaces && p->addr != addr)
		p++;
	if (p == m->places + m->nplaces) {
		if (m->nplaces == MAX_PLACES || !make_place(m, addr, frame, p))
			return false;
		m->nplaces++;
	}
	p->taken |= taken;
	p->not_taken |= !taken;
	return p->frame == frame;
}

static bool add_branches_to(struct moves *m, uint64_t addr, uint64_t ret, bool *any)
{
	if (!kx_code_is_target(m->f->code, addr))
		return true;
	if (kx_code_is_entered(m->f->code, addr))
		return false;
	for (size_t i = 0; i < m->nedges; i++) {
		if (m->edges[i].to != addr)
			continue;
		if (!add_place(m, m->edges[i].from, true, addr, ret))
			return false;
		*any = true;
	}
	return true;
}

/* Straight code that ends in a return instruction. */
struct epilogue {
	uint64_t start, ret;
	uint64_t jcc; /* the conditional branch that falls through to it, 0 if it is entered by branches only */
};

/* How far back from @ret one instruction follows the other. False if a call gets there without a branch, or too far. */
static bool find_epilogue(const struct kx_function_code *f, uint64_t ret, struct epilogue *out)
{
	uint64_t before, target;
	bool conditional;

	*out = (struct epilogue){ .start = ret, .ret = ret };
	for (int i = 0; i < MAX_BEHIND && out->start != f->parts[0].from; i++) {
		if (f->nparts > 1 && out->start == f->parts[1].from)
			return true;
		before = kx_code_previous(f->code, out->start);
		if (!kx_function_contains(f, before))
			return false;
		switch (kx_code_class(f->code, before)) {
		case KX_INSN_RET:
		case KX_INSN_JUMP:
			return true;
		case KX_INSN_BRANCH:
			if (!kx_code_branch(f->code, before, &target, &conditional))
				return false;
			out->jcc = conditional ? before : 0;
			return true;
		case KX_INSN_CALL:
		case KX_INSN_SYSTEM:
			return false;
		default:
			break;
		}
		out->start = before;
	}
	return false;
}

static bool is_pop(const uint8_t *b, unsigned length)
{
	return (length == 1 && b[0] >> 3 == 0x58 >> 3) || (length == 2 && b[0] == 0x41 && b[1] >> 3 == 0x58 >> 3);
}

/* Whether the instruction at @pos writes any part of rax or rdx, hidden operands included. */
static bool writes_result(const struct kx_function_code *f, uint64_t pos)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	struct kx_insn insn;

	if (!kx_code_decode(f->code, pos, &insn) || !kx_insn_operands(f->code, &insn, ops))
		return true;
	for (unsigned i = 0; i < insn.z.operand_count; i++) {
		ZydisRegister reg;

		if (ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER || !(ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, ops[i].reg.value);
		if (reg == ZYDIS_REGISTER_RAX || reg == ZYDIS_REGISTER_RDX)
			return true;
	}
	return false;
}

/* Whether all of it may lie behind a place. endbr64 says that something may come from anywhere. */
static bool is_simple(const struct moves *m, const struct epilogue *e)
{
	const struct kx_function_code *f = m->f;
	const struct kx_code_range *r = kx_code_range(f->code, e->ret);
	struct kx_insn insn;

	for (uint64_t pos = e->start; pos < e->ret; pos += kx_range_length(r, pos)) {
		if (m->results && writes_result(f, pos))
			return false;
		if (is_pop(kx_range_bytes(r, pos), kx_range_length(r, pos)) ||
		    (kx_range_class(r, pos) != KX_INSN_ODD && kx_bytes_are_simple(kx_range_bytes(r, pos))))
			continue;
		if (!kx_code_decode(f->code, pos, &insn) || insn.z.mnemonic == ZYDIS_MNEMONIC_ENDBR64 ||
		    (!kx_insn_is_simple(&insn) && insn.z.mnemonic != ZYDIS_MNEMONIC_POP))
			return false;
	}
	return true;
}

/* Adds all places by which @e is reached. */
static bool add_places(struct moves *m, const struct epilogue *e)
{
	const struct kx_part *main = &m->f->parts[0];
	const struct kx_symbol *sym = kx_symbols_find(m->f->syms, e->ret);
	bool any = e->jcc;

	/* who shares code is entered in the middle */
	if (e->ret - main->from < main->to - main->from && (!sym || sym->addr != main->from))
		return false;
	if (!is_simple(m, e) || (e->jcc && !add_place(m, e->jcc, false, e->start, e->ret)))
		return false;
	for (uint64_t pos = e->start; pos <= e->ret; pos += kx_code_length(m->f->code, pos))
		if (!add_branches_to(m, pos, e->ret, &any))
			return false;
	/* what nothing leads to may be where an exception lands */
	return any;
}

/* Follows the code from @pos on to the end of its block; what comes there may be added to @todo. False if it comes to @wanted. */
static bool follow(const struct moves *m, uint64_t pos, uint64_t wanted, uint8_t *seen, uint64_t *todo, size_t *n)
{
	while (kx_function_contains(m->f, pos)) {
		const struct kx_part *part = &m->f->parts[pos - m->f->parts[0].from >= m->f->parts[0].to - m->f->parts[0].from];
		const uint64_t index = pos - part->from +
				       (part == m->f->parts ? 0 : m->f->parts[0].to - m->f->parts[0].from);
		const enum kx_insn_class class = kx_range_class(part->range, pos);
		bool conditional = false;
		uint64_t target;

		if (pos == wanted)
			return false;
		if (seen[index] || class == KX_INSN_RET || class == KX_INSN_JUMP)
			return true;
		seen[index] = 1;
		if (class == KX_INSN_BRANCH) {
			kx_code_branch(m->f->code, pos, &target, &conditional);
			if (target != m->f->parts[0].from)
				todo[(*n)++] = target;
			if (!conditional)
				return true;
		}
		pos += kx_range_length(part->range, pos);
	}
	return true;
}

/*
 * Whether code that is run behind @addr may come to @addr again: that needs a branch from there or behind to there or before,
 * whatever else is on the way.
 */
static bool may_be_run_again(const struct moves *m, uint64_t addr)
{
	for (size_t i = 0; i < m->f->nparts; i++)
		if (!m->f->parts[i].regular)
			return true; /* branches may land between the instructions that were seen */
	for (size_t i = 0; i < m->nedges; i++)
		if (m->edges[i].from >= addr && m->edges[i].to <= addr)
			return true;
	return false;
}

/* Sets *@once to whether a call runs the branch at @addr at most once. */
static int is_run_once(const struct moves *m, uint64_t addr, bool *once)
{
	const struct kx_function_code *f = m->f;
	const size_t size = f->parts[0].to - f->parts[0].from + (f->nparts > 1 ? f->parts[1].to - f->parts[1].from : 0);
	uint64_t *todo, target;
	bool conditional;
	uint8_t *seen;
	size_t n = 0;

	*once = true;
	if (!may_be_run_again(m, addr))
		return 0;
	todo = calloc((size_t)f->branches + 2, sizeof(*todo));
	seen = calloc(size, 1);
	if (todo && seen && kx_code_branch(f->code, addr, &target, &conditional)) {
		todo[n++] = target;
		if (conditional)
			todo[n++] = addr + kx_code_length(f->code, addr);
		while (n && *once) {
			const uint64_t pos = todo[--n];

			*once = follow(m, pos, addr, seen, todo, &n);
		}
	}
	free(seen);
	free(todo);
	return todo && seen ? 0 : -ENOMEM;
}

/* Whether only padding comes from @pos on, to the end of its part of the function. */
static bool is_end(const struct kx_function_code *f, uint64_t pos)
{
	struct kx_insn insn;

	while (kx_function_contains(f, pos)) {
		if (!kx_code_decode(f->code, pos, &insn) || !kx_insn_is_padding(&insn))
			return false;
		pos += insn.z.length;
	}
	return true;
}

/* Whether the code at @pos ends in a call that never returns, because nothing follows it: that of __stack_chk_fail. */
static bool never_returns(const struct kx_function_code *f, uint64_t pos)
{
	for (int i = 0; i < MAX_BEHIND && kx_function_contains(f, pos); i++) {
		const enum kx_insn_class class = kx_code_class(f->code, pos);

		pos += kx_code_length(f->code, pos);
		if (class == KX_INSN_CALL)
			return is_end(f, pos);
		if (class != KX_INSN_PLAIN && class != KX_INSN_STACK)
			return false;
	}
	return false;
}

/* Whether a call may come to @p and go on. */
static bool is_passed(const struct kx_function_code *f, const struct place *p)
{
	uint64_t target;
	bool conditional;

	if (!p->conditional || (p->taken && p->not_taken) ||
	    !kx_code_branch(f->code, p->addr, &target, &conditional))
		return false;
	return !never_returns(f, p->taken ? p->addr + kx_code_length(f->code, p->addr) : target);
}

/* Finds the places of all of @out's return instructions. Returns 1, 0 if they have to stay, or -ENOMEM. */
static int find_places(struct moves *m, const struct kx_plan *out)
{
	size_t passed = 0;
	struct epilogue e;

	for (size_t i = 0; i < out->nexits; i++)
		if (out->exits[i].cost == KX_COST_STEPPED && !find_epilogue(m->f, out->exits[i].addr, &e))
			return 0;
	m->edges = calloc(m->f->branches, sizeof(*m->edges));
	if (!m->edges)
		return -ENOMEM;
	if (!note_edges(m))
		return 0;
	for (size_t i = 0; i < out->nexits; i++)
		if (out->exits[i].cost == KX_COST_STEPPED &&
		    (!find_epilogue(m->f, out->exits[i].addr, &e) || !add_places(m, &e)))
			return 0;
	for (size_t i = 0; i < m->nplaces; i++) {
		bool once;
		const int ret = is_run_once(m, m->places[i].addr, &once);

		if (ret || !once)
			return ret;
		passed += is_passed(m->f, &m->places[i]);
	}
	return passed <= KX_PLAN_MAX_PASSED;
}

static int replace(const struct moves *m, struct kx_plan *out, struct kx_err *err)
{
	size_t kept = 0;
	int ret = 0;

	for (size_t i = 0; i < out->nexits; i++)
		if (out->exits[i].cost != KX_COST_STEPPED)
			out->exits[kept++] = out->exits[i];
	out->nexits = kept;
	for (size_t i = 0; i < m->nplaces && !ret; i++) {
		const struct place *p = &m->places[i];
		const bool both = p->taken && p->not_taken;

		ret = kx_plan_add_exit(out,
				       &(struct kx_sled){
					       .addr = p->addr,
					       .kind = KX_SLED_EXIT,
					       .cost = KX_COST_EMULATED,
					       .frame = p->frame,
					       .conditional = p->conditional && !both,
					       /* the lowest bit negates */
					       .condition = p->conditional && !both ? p->condition ^ p->not_taken : 0,
				       },
				       err);
	}
	return ret;
}

static int by_address(const void *a, const void *b)
{
	const struct kx_sled *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Whether the function's branches and return instructions show each way through it. */
static bool is_closed(const struct kx_function_code *f, const struct kx_jumps *jumps, const struct kx_plan *out)
{
	size_t stepped = 0, branches = 0;

	for (size_t i = 0; i < out->nexits; i++) {
		const bool is_stepped = out->exits[i].cost == KX_COST_STEPPED;

		if (is_stepped && out->exits[i].kind != KX_SLED_EXIT)
			return false;
		stepped += is_stepped;
		branches += !is_stepped;
	}
	/* a jump to the outside that is no exit leads to a part of the function without a symbol */
	for (size_t i = 0; i < f->nways; i++)
		branches -= f->ways[i].class == KX_INSN_BRANCH;
	return stepped && !branches && !jumps->any_inside;
}

int kx_plan_move_exits(const struct kx_function_code *f, const struct kx_jumps *jumps, bool results,
		       struct kx_plan *out, struct kx_err *err)
{
	struct moves m = { .f = f, .results = results };
	int ret;

	if (!is_closed(f, jumps, out) || !f->branches)
		return 0;
	ret = find_places(&m, out);
	free(m.edges);
	if (ret < 0)
		return kx_err_set(err, ret, "out of memory for its exits");
	if (!ret)
		return 0;
	ret = replace(&m, out, err);
	if (!ret)
		qsort(out->exits, out->nexits, sizeof(*out->exits), by_address);
	return ret;
}
