// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the probes of a binary's functions go, and why some are single-stepped.
 *
 *   placement FILE...           a table of each file: shares of cheap entries, what stands in the way of the others, exits
 *   placement --places FILE     "NAME FROM TO ENTRY FRAME EXIT..." of each function with instruction exits, in hex; an
 *                               exit is KIND:ADDRESS:COST:FRAME:CONDITION, the last one - if there is none
 *
 * Uses what this kernel emulates.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binary/elf_image.h"
#include "binary/symbols.h"
#include "plan/function.h"
#include "plan/plan.h"
#include "plan/probe_cost.h"
#include "plan/simple_insn.h"
#include "tracer/uprobe_try.h"

/* Behind the first three there is nothing that the kernel emulates. */
enum obstacle { RET, SYSTEM, INDIRECT, FRAME, TARGET, TABLE, SLOW, OTHER, OBSTACLES };
static const char *const obstacles[OBSTACLES] = {
	[RET] = "returns without any jump, call or push",
	[SYSTEM] = "comes to a system call first",
	[INDIRECT] = "comes to an indirect jump or call first",
	[FRAME] = "takes its frame first (sub $n,%rsp, or a push that is not emulated)",
	[TARGET] = "a branch lands before the first jump, call or push",
	[TABLE] = "has a switch whose table is not read",
	[SLOW] = "has a locked, repeated or trapping instruction before it",
	[OTHER] = "another reason",
};

struct library {
	struct kx_elf *elf;
	struct kx_symbols syms;
	struct kx_planner *planner;
	struct kx_code *code;
};

static int open_library(struct library *l, const char *path, struct kx_err *err)
{
	*l = (struct library){ 0 };
	return kx_elf_open(path, &l->elf, err) || kx_symbols_read(l->elf, NULL, &l->syms, err) ||
	       kx_planner_new(l->elf, &l->syms, 1, NULL, &l->planner, err) || kx_code_new(l->elf, &l->syms, 1, NULL, &l->code, err);
}

static void close_library(struct library *l)
{
	kx_code_free(l->code);
	kx_planner_free(l->planner);
	kx_symbols_free(&l->syms);
	kx_elf_close(l->elf);
}

static bool moves_stack(const struct kx_code *code, const struct kx_insn *insn)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

	for (unsigned i = 0; kx_insn_operands(code, insn, ops) && i < insn->z.operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    ops[i].reg.value == ZYDIS_REGISTER_RSP)
			return true;
	return false;
}

/* What comes first in @s, whose entry probe is single-stepped, before an instruction that would do. */
static enum obstacle obstacle_of(const struct library *l, const struct kx_symbol *s,
				 const struct kx_plan_options *options)
{
	struct kx_insn insn;

	for (uint64_t pos = s->addr; pos < s->addr + s->size; pos += insn.z.length) {
		if (!kx_code_decode(l->code, pos, &insn))
			return OTHER;
		if (pos != s->addr && kx_code_is_target(l->code, pos))
			return TARGET;
		if (options->emulated >> kx_insn_kind(&insn) & 1)
			return TABLE;
		switch (kx_insn_classify(&insn.z)) {
		case KX_INSN_RET:
			return RET;
		case KX_INSN_SYSTEM:
			return SYSTEM;
		case KX_INSN_CALL:
		case KX_INSN_JUMP:
			return INDIRECT;
		default:
			break;
		}
		if (moves_stack(l->code, &insn))
			return insn.z.mnemonic == ZYDIS_MNEMONIC_SUB || insn.z.mnemonic == ZYDIS_MNEMONIC_PUSH ? FRAME : OTHER;
		if (!kx_insn_is_simple(&insn))
			return SLOW;
	}
	return OTHER;
}

struct entries {
	size_t all, cheap, obstacles[OBSTACLES];
};

static void count_entries(const struct library *l, struct kx_plan_options options, enum kx_exits exits,
			  struct entries *out)
{
	*out = (struct entries){ 0 };
	options.exits = exits;
	for (size_t i = 0; i < l->syms.count; i++) {
		struct kx_plan plan;

		if (kx_plan_function(l->planner, &l->syms.items[i], &options, &plan, NULL))
			continue;
		out->all++;
		if (plan.entry.cost != KX_COST_STEPPED)
			out->cheap++;
		else
			out->obstacles[obstacle_of(l, &l->syms.items[i], &options)]++;
		kx_plan_free(&plan);
	}
}

struct exits {
	size_t all, jumps_only, moved, after_call, from_entry;
};

/* Whether straight on a call, or the function's first instruction, leads to @ret. */
static void find_start(const struct library *l, const struct kx_symbol *s, uint64_t ret, bool *call, bool *entry)
{
	uint64_t at = ret;

	while (at && at != s->addr) {
		enum kx_insn_class class;

		at = kx_code_previous(l->code, at);
		class = kx_code_class(l->code, at);
		*call |= class == KX_INSN_CALL || class == KX_INSN_SYSTEM;
		if (!at || (class != KX_INSN_PLAIN && class != KX_INSN_STACK && class != KX_INSN_ODD))
			return;
	}
	*entry |= at == s->addr;
}

static void count_exits(const struct library *l, struct kx_plan_options options, struct exits *out)
{
	*out = (struct exits){ 0 };
	options.exits = KX_EXITS_INSTRUCTION;
	for (size_t i = 0; i < l->syms.count; i++) {
		bool is_moved = false, call = false, entry = false;
		struct kx_plan plan;

		if (kx_plan_function(l->planner, &l->syms.items[i], &options, &plan, NULL))
			continue;
		for (size_t k = 0; k < plan.nexits; k++) {
			is_moved |= plan.exits[k].kind == KX_SLED_EXIT && plan.exits[k].cost != KX_COST_STEPPED;
			if (plan.exits[k].cost == KX_COST_STEPPED)
				find_start(l, &l->syms.items[i], plan.exits[k].addr, &call, &entry);
		}
		out->all += plan.nexits > 0;
		out->jumps_only += plan.exits_emulated && !is_moved;
		out->moved += plan.exits_emulated && is_moved;
		out->after_call += call;
		out->from_entry += entry && !call;
		kx_plan_free(&plan);
	}
}

static double percent(size_t part, size_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

/*
 * What no planner can do better: a function that comes to its end, to the kernel or elsewhere before any emulated instruction
 * has no cheap place, whatever records its exit; a return probe replaces what the stack pointer points at, so none is behind
 * the instruction that moves it. @e: with return probes.
 */
static void print_most(const struct entries *e)
{
	const size_t *o = e->obstacles, possible = e->all - o[RET] - o[SYSTEM] - o[INDIRECT];

	printf("  at most, as this kernel emulates: %.1f %% with return probes, %.1f %% without exits; %zu of %zu functions have no "
	       "emulated\n"
	       "  instruction in the straight code at their beginning, %zu more have none before their frame is taken\n",
	       percent(possible - o[FRAME], e->all), percent(possible, e->all), e->all - possible, e->all, o[FRAME]);
}

static void print_table(const struct library *l, const char *path, const struct kx_plan_options *options)
{
	struct entries returns, automatic, none;
	struct exits exits;
	size_t rest;

	count_entries(l, *options, KX_EXITS_RETURN, &returns);
	count_entries(l, *options, KX_EXITS_AUTO, &automatic);
	count_entries(l, *options, KX_EXITS_NONE, &none);
	count_exits(l, *options, &exits);
	printf("%s: %zu functions\n", path, returns.all);
	printf("  cheap entries: %.1f %% with return probes, %.1f %% where exits are chosen, %.1f %% without exits\n",
	       percent(returns.cheap, returns.all), percent(automatic.cheap, automatic.all),
	       percent(none.cheap, none.all));
	for (int i = 0; i < OBSTACLES; i++)
		printf("    single-stepped, %%: %4.1f %4.1f %4.1f  %s\n", percent(returns.obstacles[i], returns.all),
		       percent(automatic.obstacles[i], automatic.all), percent(none.obstacles[i], none.all),
		       obstacles[i]);
	print_most(&returns);
	rest = exits.all - exits.jumps_only - exits.moved - exits.after_call - exits.from_entry;
	printf("  instruction exits, none single-stepped: %.1f %%, of which seen at jumps before the ret: %.1f %%\n",
	       percent(exits.jumps_only + exits.moved, exits.all), percent(exits.moved, exits.all));
	printf("    %4.1f %%  a call comes right before a ret\n", percent(exits.after_call, exits.all));
	printf("    %4.1f %%  there is no jump between the entry and a ret\n", percent(exits.from_entry, exits.all));
	printf("    %4.1f %%  jumps in loops, passed too often, switches and other reasons\n", percent(rest, exits.all));
}

static void print_places(const struct library *l, struct kx_plan_options options)
{
	options.exits = KX_EXITS_INSTRUCTION;
	for (size_t i = 0; i < l->syms.count; i++) {
		const struct kx_symbol *s = &l->syms.items[i];
		struct kx_plan plan;

		if (kx_plan_function(l->planner, s, &options, &plan, NULL))
			continue;
		printf("%s %" PRIx64 " %" PRIx64 " %" PRIx64 " %x", s->name, s->addr, s->addr + s->size,
		       plan.entry.addr, plan.frame);
		for (size_t k = 0; k < plan.nexits; k++) {
			const struct kx_sled *e = &plan.exits[k];

			printf(" %s:%" PRIx64 ":%s:%x:", e->kind == KX_SLED_TAIL ? "tail" : "exit", e->addr,
			       kx_cost_name((enum kx_cost)e->cost), e->frame);
			printf(e->conditional ? "%x" : "-", e->condition);
		}
		printf("\n");
		kx_plan_free(&plan);
	}
}

int main(int argc, char **argv)
{
	const bool places = argc > 1 && !strcmp(argv[1], "--places");
	const struct kx_plan_options options = { .emulated = kx_probe_emulated(),
						 .nop5_optimized = kx_probe_nop5_optimized() > 0,
						 .nop5_forbidden = kx_probe_nop5_harms(),
						 .returns_harmless = true };

	if (argc < 2 + places) {
		fprintf(stderr, "usage: placement [--places] FILE...\n");
		return 2;
	}
	for (int i = 1 + places; i < argc; i++) {
		struct kx_err err = { 0 };
		struct library l;

		if (open_library(&l, argv[i], &err)) {
			fprintf(stderr, "placement: %s\n", err.text);
			return 1;
		}
		if (places)
			print_places(&l, options);
		else
			print_table(&l, argv[i], &options);
		close_library(&l);
	}
	return 0;
}
