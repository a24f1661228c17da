// SPDX-License-Identifier: BSD-2-Clause
#include "plan/plan_exits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "plan/probe_cost.h"

int kx_plan_add_exit(struct kx_plan *plan, const struct kx_sled *sled, struct kx_err *err)
{
	/* Grows at the powers of two. */
	if (!(plan->nexits & (plan->nexits - 1))) {
		const size_t room = plan->nexits ? plan->nexits * 2 : 1;
		struct kx_sled *grown = realloc(plan->exits, room * sizeof(*grown));

		if (!grown)
			return kx_err_set(err, -ENOMEM, "out of memory for its exits");
		plan->exits = grown;
	}
	plan->exits[plan->nexits++] = *sled;
	return 0;
}

/* Whether the code at @addr, outside of all parts and perhaps not decoded, soon jumps back into the function. */
static bool comes_back(const struct kx_function_code *f, uint64_t addr)
{
	const struct kx_code_range *r = kx_code_range(f->code, addr);
	struct kx_insn insn;
	uint64_t target;

	for (int i = 0; i < 64 && r && addr - r->addr < r->size; i++) {
		const unsigned info = kx_code_info(f->code, r, addr, &target);
		const unsigned class = info >> KX_INFO_CLASS_SHIFT;

		if (!info || class == KX_INSN_RET || class == KX_INSN_JUMP)
			return false;
		if (class == KX_INSN_BRANCH && kx_code_decode(f->code, addr, &insn) &&
		    insn.z.meta.category != ZYDIS_CATEGORY_COND_BR)
			return kx_function_contains(f, target) && target != f->parts[0].from;
		addr += info & KX_INFO_LENGTH;
	}
	return false;
}

/* Whether the direct jump @way leaves the function. */
static bool is_tail_jump(const struct kx_function_code *f, const struct kx_stack *s,
			 const struct kx_way_out *way, bool restarts)
{
	const struct kx_symbol *sym;
	int32_t depth;
	bool known;

	if (way->target == f->parts[0].from)
		return !restarts;
	known = kx_stack_depth(s, way->addr, &depth);
	if (known && depth != 0)
		return false;
	sym = kx_symbols_find(f->syms, way->target);
	if (sym && sym->addr == way->target)
		return true;
	if (comes_back(f, way->target))
		return false;
	return known || !way->conditional;
}

/* Sled for the exit instruction @insn. */
static int add_exit(const struct kx_function_code *f, const struct kx_insn *insn,
		    enum kx_sled_kind kind, struct kx_plan *out, struct kx_err *err)
{
	struct kx_sled sled = { .addr = insn->addr, .kind = (uint8_t)kind };
	const uint64_t offset = insn->addr - f->parts[0].from;
	enum kx_cost cost;

	if (insn->z.meta.category == ZYDIS_CATEGORY_COND_BR) {
		/* jcc rel8 and rel32 keep the condition in the opcode; loop and jrcxz have none. */
		if (insn->z.opcode >> 4 != 7 && insn->z.opcode >> 4 != 8)
			return kx_err_set(err, -EOPNOTSUPP,
					  "it leaves by a loop instruction at +0x%" PRIx64, offset);
		sled.conditional = true;
		sled.condition = insn->z.opcode & 15;
	}
	if (!kx_probe_cost(insn, NULL, &cost))
		return kx_err_set(err, -EOPNOTSUPP,
				  "the kernel takes no probe on its exit at +0x%" PRIx64, offset);
	sled.cost = (uint8_t)cost;
	return kx_plan_add_exit(out, &sled, err);
}

/* @way as an exit, if it is one; @jump: what it does if it is an indirect jump. */
static int visit(const struct kx_function_code *f, const struct kx_stack *s, const struct kx_way_out *way,
		 enum kx_jump jump, bool restarts, struct kx_plan *out, struct kx_err *err)
{
	const struct kx_sled plain_ret = { .addr = way->addr, .kind = KX_SLED_EXIT, .cost = KX_COST_STEPPED };
	struct kx_insn insn;

	if (way->class == KX_INSN_BRANCH ? !is_tail_jump(f, s, way, restarts) :
					   way->class == KX_INSN_JUMP && jump == KX_JUMP_TABLE)
		return 0;
	out->tail_calls |= way->class != KX_INSN_RET;
	if (way->class == KX_INSN_JUMP && jump == KX_JUMP_UNCLEAR)
		return kx_err_set(err, -EOPNOTSUPP,
				  "the jump at +0x%" PRIx64 " may be a tail call or a switch",
				  way->addr - f->parts[0].from);
	if (way->class == KX_INSN_RET && kx_code_length(f->code, way->addr) == 1)
		return kx_plan_add_exit(out, &plain_ret, err);
	if (!kx_code_decode(f->code, way->addr, &insn))
		return 0;
	return add_exit(f, &insn, way->class == KX_INSN_RET ? KX_SLED_EXIT : KX_SLED_TAIL, out, err);
}

static int by_address(const void *a, const void *b)
{
	const struct kx_sled *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int kx_plan_exits(const struct kx_function_code *f, const struct kx_stack *s,
		  const struct kx_jumps *jumps, bool restarts, struct kx_plan *out,
		  struct kx_err *err)
{
	struct kx_err *first_err = err;
	size_t njump = 0;
	int ret = 0;

	for (size_t i = 0; i < f->nways; i++) {
		const struct kx_way_out *way = &f->ways[i];
		const enum kx_jump jump = way->class == KX_INSN_JUMP ? jumps->kinds[njump++] :
								       KX_JUMP_TABLE;
		const int failed = visit(f, s, way, jump, restarts, out, first_err);

		if (failed == -ENOMEM)
			return failed;
		/* Continue for tail_calls; the first reason is shown. */
		if (failed && !ret) {
			ret = failed;
			first_err = NULL;
		}
	}
	if (ret) {
		free(out->exits);
		out->exits = NULL;
		out->nexits = 0;
	} else if (out->nexits && f->nparts > 1) {
		qsort(out->exits, out->nexits, sizeof(*out->exits), by_address);
	}
	return ret;
}
