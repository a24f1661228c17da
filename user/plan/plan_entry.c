// SPDX-License-Identifier: BSD-2-Clause
#include "plan/plan_entry.h"

#include <errno.h>
#include <inttypes.h>

#include "plan/probe_cost.h"
#include "plan/simple_insn.h"

/* Beyond some instructions a cheap one is no gain any more, and hides more of a call. */
#define MAX_SKIPPED 32
#define ALL_ARGUMENTS 6

struct effects {
	bool moves_stack;        /* writes RSP */
	bool writes_red_zone;    /* stores through RSP */
	uint8_t first_argument;  /* lowest argument register written; ALL_ARGUMENTS if none */
	bool writes_go_argument;
};

/* abi-internal.md of Go 1.17 and later. */
static bool is_go_argument(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_RAX || reg == ZYDIS_REGISTER_RBX || reg == ZYDIS_REGISTER_RCX ||
	       reg == ZYDIS_REGISTER_RDI || reg == ZYDIS_REGISTER_RSI || (reg >= ZYDIS_REGISTER_R8 && reg <= ZYDIS_REGISTER_R11);
}

static uint8_t argument_index(ZydisRegister reg)
{
	static const ZydisRegister order[ALL_ARGUMENTS] = {
		ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
		ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8,  ZYDIS_REGISTER_R9,
	};
	uint8_t i = 0;

	while (i < ALL_ARGUMENTS && order[i] != reg)
		i++;
	return i;
}

static bool effects_of(const struct kx_code *code, const struct kx_insn *insn, struct effects *out)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

	*out = (struct effects){ .first_argument = ALL_ARGUMENTS };
	if (!kx_insn_operands(code, insn, ops))
		return false;
	for (unsigned i = 0; i < insn->z.operand_count; i++) {
		ZydisRegister reg;
		uint8_t arg;

		if (!(ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			out->writes_red_zone |= ops[i].mem.base == ZYDIS_REGISTER_RSP;
		if (ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						       ops[i].reg.value);
		out->moves_stack |= reg == ZYDIS_REGISTER_RSP;
		out->writes_go_argument |= is_go_argument(reg);
		arg = argument_index(reg);
		if (arg < out->first_argument)
			out->first_argument = arg;
	}
	return true;
}

static bool is_push(const struct kx_insn *insn)
{
	return insn->z.meta.category == ZYDIS_CATEGORY_PUSH;
}

/*
 * A push of a constant or from memory, which the kernel does not emulate: the argument of a call, often right before it. The
 * emulated ones, of registers, are places for a probe, and what lies behind them is not asked for (gap.h).
 */
static bool is_pushed_argument(const struct kx_insn *insn)
{
	return insn->z.mnemonic == ZYDIS_MNEMONIC_PUSH && insn->z.operand_width == 64 &&
	       !kx_is_push(insn->bytes, insn->z.length);
}

/* Adds what `sub $n,%rsp`, `add $-n,%rsp` or a pushed argument takes to @frame; false if @insn is something else or the sum
 * is not a frame that a probe's cookie can hold. */
static bool grow_frame(const struct kx_code *code, const struct kx_insn *insn, unsigned *frame)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	int64_t bytes = 8;

	if (!is_pushed_argument(insn)) {
		if (!kx_insn_operands(code, insn, ops) || ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    ops[0].reg.value != ZYDIS_REGISTER_RSP || ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return false;
		bytes = ops[1].imm.value.s;
		if (insn->z.mnemonic == ZYDIS_MNEMONIC_ADD)
			bytes = -bytes;
		else if (insn->z.mnemonic != ZYDIS_MNEMONIC_SUB)
			return false;
	}
	if (bytes <= 0 || bytes % 8 || bytes > KX_PLAN_MAX_FRAME - (int64_t)*frame)
		return false;
	*frame += (unsigned)bytes;
	return true;
}

/*
 * What stays single-stepped: functions without a jump, call or push on their way to `ret` or to a system call, and with
 * return probes those that take their frame first, unless their exits can be seen at jumps (move_exits.h).
 * `scripts/bench.sh share` counts them.
 */

/* Where the walk over a function's first instructions has come to. */
struct place {
	uint64_t pos;
	unsigned frame;   /* bytes that the stack pointer is below its value at entry */
	uint8_t args;
	bool go;	  /* a Go program: its argument registers count, too */
	bool go_written;
	bool pushed;      /* an argument of a call: that may be in a loop */
	bool red_zone;    /* something may have been stored below the stack pointer */
	bool past_endbr;  /* the first instruction, or the one after an endbr64 there */
};

/* Whether the probe may be put at @insn, which the walk has reached. */
static bool may_probe(const struct place *at, const struct kx_insn *insn, bool hidden_targets)
{
	/*
	 * Where jumps land that can't be read from the code, only these are safe: a loop holds
	 * neither the first real instruction nor a prologue's push. The kernel's call in place
	 * of a nop5 overwrites what lies below the stack pointer, so nothing may have been
	 * stored there yet.
	 */
	return (at->past_endbr || !hidden_targets || (is_push(insn) && !at->pushed)) &&
	       !(at->red_zone && kx_insn_is_nop5(insn));
}

/* Goes past @insn; false if the probe has to come before it. */
static bool step_over(const struct kx_function_code *f, struct place *at,
		      const struct kx_insn *insn, enum kx_stack_rule rule)
{
	struct effects fx;

	if ((!kx_insn_is_simple(insn) && !is_pushed_argument(insn)) || !effects_of(f->code, insn, &fx))
		return false;
	if (fx.moves_stack &&
	    (rule == KX_STACK_UNMOVED || !grow_frame(f->code, insn, &at->frame)))
		return false;
	at->pushed |= is_pushed_argument(insn);
	at->red_zone |= fx.writes_red_zone;
	if (fx.first_argument < at->args)
		at->args = fx.first_argument;
	at->go_written |= fx.writes_go_argument;
	at->pos += insn->z.length;
	return true;
}

/*
 * The entry of functions that begin with `push`, or `endbr64; push`, by their bytes: nothing cheaper can follow, as the
 * push moves the stack. False if it is another one.
 */
static bool plan_push(const struct kx_function_code *f, uint64_t from, const struct kx_plan_options *options,
		      struct kx_plan *out)
{
	const unsigned emulated = options->emulated ? options->emulated : KX_EMULATED_ALWAYS;
	const uint64_t end = f->parts[0].to;
	const uint8_t *b = kx_range_bytes(f->parts[0].range, from);
	uint64_t pos = from;

	if (end - pos > KX_ENDBR64_SIZE && kx_is_endbr64(b)) {
		pos += KX_ENDBR64_SIZE;
		b += KX_ENDBR64_SIZE;
		if (kx_code_is_target(f->code, pos))
			return false;
	}
	if (end - pos < 2 || (!kx_is_push(b, 1) && !kx_is_push(b, 2)) ||
	    !(emulated >> KX_INSN_PUSH & 1))
		return false;
	out->entry = (struct kx_sled){ .addr = pos, .kind = KX_SLED_ENTRY, .cost = KX_COST_EMULATED };
	out->args = ALL_ARGUMENTS;
	out->arguments_kept = true;
	out->frame = 0;
	return true;
}

static bool keeps_arguments(const struct place *at)
{
	return at->args == ALL_ARGUMENTS && !(at->go && at->go_written);
}

static int plan_entry(const struct kx_function_code *f, struct place at, bool hidden_targets, enum kx_stack_rule rule,
		      const struct kx_plan_options *options, struct kx_plan *out, struct kx_err *err)
{
	const uint64_t from = at.pos;
	bool found = false, replace = false;
	struct kx_insn insn;
	enum kx_cost cost;

	if (plan_push(f, from, options, out))
		return 0;
	for (unsigned i = 0; i <= MAX_SKIPPED && at.pos < f->parts[0].to; i++) {
		const bool is_endbr = kx_code_decode(f->code, at.pos, &insn) &&
				      insn.z.mnemonic == ZYDIS_MNEMONIC_ENDBR64;

		if (i > 0 && kx_code_is_target(f->code, at.pos))
			break; /* a loop may jump here */
		if (found && options->arguments && !keeps_arguments(&at))
			break;
		if (may_probe(&at, &insn, hidden_targets) && kx_probe_cost(&insn, options, &cost) &&
		    (!found || replace || cost < out->entry.cost)) {
			out->entry = (struct kx_sled){
				.addr = at.pos,
				.kind = KX_SLED_ENTRY,
				.cost = (uint8_t)cost,
			};
			out->args = at.args;
			out->arguments_kept = keeps_arguments(&at);
			out->frame = (uint8_t)at.frame;
			found = true;
		}
		/* endbr64 is as expensive as any other; the first real instruction is the better choice. */
		replace = is_endbr && i == 0;
		at.past_endbr = replace;
		if (!step_over(f, &at, &insn, rule))
			break;
	}
	if (!found)
		return kx_err_set(err, -EOPNOTSUPP,
				  "the kernel takes no probe on its first instructions at +0x%" PRIx64,
				  from - f->parts[0].from);
	return 0;
}

int kx_plan_entry(const struct kx_function_code *f, uint64_t from, bool hidden_targets,
		  enum kx_stack_rule rule, const struct kx_plan_options *options,
		  struct kx_plan *out, struct kx_err *err)
{
	const struct place at = { .pos = from, .args = ALL_ARGUMENTS, .past_endbr = true };

	return plan_entry(f, at, hidden_targets, rule, options, out, err);
}

int kx_plan_go_entry(const struct kx_function_code *f, uint64_t from, bool hidden_targets, enum kx_stack_rule rule,
		     const struct kx_plan_options *options, struct kx_plan *out, struct kx_err *err)
{
	const struct place at = { .pos = from, .args = ALL_ARGUMENTS, .past_endbr = true, .go = true };

	return plan_entry(f, at, hidden_targets, rule, options, out, err);
}

uint64_t kx_go_body(const struct kx_function_code *f)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t pos = f->parts[0].from;
	bool compared = false;
	struct kx_insn insn;
	struct effects fx;

	/* [lea -N(%rsp),%r12 | mov %rsp,%r12; sub $N,%r12; jb]; cmp 0x10(%r14),%rsp; jbe. Before
	 * Go 1.17 the goroutine comes from thread-local storage instead of %r14. */
	for (int i = 0; i < 6; i++) {
		if (!kx_code_decode(f->code, pos, &insn))
			break;
		pos += insn.z.length;
		if (insn.z.mnemonic == ZYDIS_MNEMONIC_JBE && compared)
			return pos;
		if (insn.z.mnemonic == ZYDIS_MNEMONIC_JB)
			continue;
		if (!kx_insn_is_simple(&insn) || !effects_of(f->code, &insn, &fx) || fx.moves_stack ||
		    !kx_insn_operands(f->code, &insn, ops))
			break;
		compared = insn.z.mnemonic == ZYDIS_MNEMONIC_CMP &&
			   ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			   ops[1].mem.disp.value == 0x10;
	}
	return f->parts[0].from;
}
