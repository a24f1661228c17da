// SPDX-License-Identifier: BSD-2-Clause
#include "plan/windows.h"

#include <errno.h>
#include <stdlib.h>

#include "plan/landings.h"
#include "plan/new_threads.h"
#include "plan/plan.h"
#include "plan/plan_exits.h"
#include "plan/register_use.h"
#include "plan/restartable.h"
#include "plan/window_exits.h"
#include "plan/window_faults.h"
#include "plan/window_places.h"
#include "plan/window_tables.h"

struct kx_window_planner {
	struct kx_planner *planner;
	const struct kx_code *code; /* the planner's */
	struct kx_elf *elf;
	const struct kx_symbols *syms;
	struct kx_landing_map landings;
	struct kx_new_thread_functions new_threads;
	bool faults_stay;
};

#define RESTARTABLE "it has critical sections that the kernel restarts (rseq)"

/* Binaries that write their own code, or that the kernel finds places in. */
static int check_sections(struct kx_elf *elf, struct kx_err *err)
{
	static const struct {
		const char *section, *why;
	} all[] = {
		{ "__rseq_cs", RESTARTABLE },
		{ "__patchable_function_entries", "it patches the beginnings of its functions itself" },
		{ "__mcount_loc", "it patches the beginnings of its functions itself" },
		{ "__jump_table", "it patches its own branches" },
		{ "xray_instr_map", "it has XRay sleds, which it may patch itself" },
		{ ".gopclntab", "it is a Go program, which moves its stacks" },
		{ ".go.buildinfo", "it is a Go program, which moves its stacks" },
	};
	struct kx_elf_section s;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (kx_elf_get_section(elf, all[i].section, &s))
			return kx_err_set(err, -EOPNOTSUPP, "%s", all[i].why);
	if (!kx_elf_section_at(elf, 1, &(const char *){ NULL }, &s))
		return kx_err_set(err, -EOPNOTSUPP, "it has no section table, so that its exception tables are unknown");
	return 0;
}

int kx_window_planner_new(struct kx_elf *elf, const struct kx_symbols *syms, size_t threads, struct kx_window_planner **out,
			  struct kx_err *err)
{
	struct kx_window_planner *p;
	int ret = check_sections(elf, err);

	if (ret)
		return ret;
	p = calloc(1, sizeof(*p));
	if (!p)
		return kx_err_set(err, -ENOMEM, "out of memory while planning %s", kx_elf_path(elf));
	p->elf = elf;
	p->syms = syms;
	kx_new_threads_find(syms, &p->new_threads);
	ret = kx_planner_new(elf, syms, threads, NULL, &p->planner, err);
	if (!ret) {
		p->code = kx_planner_code(p->planner);
		ret = kx_landings_find(elf, syms, p->code, &p->landings, err);
	}
	if (!ret && kx_restartable_found(&p->landings))
		ret = kx_err_set(err, -EOPNOTSUPP, RESTARTABLE);
	if (ret) {
		kx_window_planner_free(p);
		return ret;
	}
	*out = p;
	return 0;
}

void kx_window_planner_free(struct kx_window_planner *p)
{
	if (!p)
		return;
	kx_landing_map_free(&p->landings);
	kx_planner_free(p->planner);
	free(p);
}

const struct kx_code *kx_window_planner_code(const struct kx_window_planner *p)
{
	return p->code;
}

/* A function that is decoded, and how its stack pointer moves. */
typedef enum kx_window_refusal plan_fn(const struct kx_window_planner *p, const struct kx_function_code *f, const struct kx_stack *stack,
				       struct kx_windows *out);

static struct kx_window_ground ground_of(const struct kx_window_planner *p, const struct kx_function_code *f)
{
	return (struct kx_window_ground){ .code = p->code, .landings = &p->landings, .function = f, .faults_stay = p->faults_stay,
					  .frame = p->faults_stay && kx_window_has_frame(p->code, f->parts[0].from) };
}

static enum kx_window_refusal plan_entry_and_exits(const struct kx_window_planner *p, const struct kx_function_code *f,
						   const struct kx_stack *stack, struct kx_windows *out)
{
	const struct kx_window_ground ground = ground_of(p, f);
	enum kx_window_refusal why = KX_WINDOW_UNPLANNED;
	struct kx_plan exits = { 0 };
	struct kx_jumps jumps = { 0 };

	if (!kx_jumps_classify(f, stack, p->elf, &jumps, NULL) && !kx_plan_exits(f, stack, &jumps, false, &exits, NULL)) {
		why = kx_window_exits(f, stack, &p->landings, &exits);
		if (!why && !kx_window_tables_known(f, &jumps, &p->landings))
			why = KX_WINDOW_TABLE;
		if (!why)
			why = kx_window_places(&ground, &exits, out);
	}
	kx_plan_free(&exits);
	kx_jumps_free(&jumps);
	return why;
}

/* Whether nothing in [from, to) changes the first three arguments: instructions that run one after the other. */
static bool keeps_arguments(const struct kx_code *code, uint64_t from, uint64_t to)
{
	static const ZydisRegister arguments[] = { ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX };
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	struct kx_insn insn;

	for (uint64_t at = from; at < to; at += insn.z.length) {
		if (!kx_code_decode(code, at, &insn) || !kx_insn_operands(code, &insn, operands))
			return false;
		for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++)
			if (kx_writes_register(&insn.z, operands, arguments[i]))
				return false;
	}
	return true;
}

static enum kx_window_refusal plan_entry(const struct kx_window_planner *p, const struct kx_function_code *f,
					 const struct kx_stack *stack, struct kx_windows *out)
{
	const struct kx_window_ground ground = ground_of(p, f);
	const struct kx_plan no_exits = { 0 };
	enum kx_window_refusal why = KX_WINDOW_UNPLANNED;
	struct kx_jumps jumps = { 0 };

	if (!kx_jumps_classify(f, stack, p->elf, &jumps, NULL)) {
		why = kx_window_tables_known(f, &jumps, &p->landings) ? kx_window_places(&ground, &no_exits, out) : KX_WINDOW_TABLE;
		if (!why && !keeps_arguments(p->code, f->parts[0].from, out->items[0].start))
			why = KX_WINDOW_ARGUMENTS;
	}
	kx_jumps_free(&jumps);
	return why;
}

void kx_window_planner_keep_faults(struct kx_window_planner *p)
{
	p->faults_stay = true;
}

static enum kx_window_refusal plan_by(struct kx_window_planner *p, const struct kx_symbol *sym, plan_fn *scanned, struct kx_windows *out)
{
	const struct kx_plan_options options = { .exits = KX_EXITS_INSTRUCTION };
	enum kx_window_refusal why = KX_WINDOW_UNPLANNED;
	struct kx_function_code f;
	struct kx_stack *stack;
	struct kx_plan plan;
	bool touches;

	out->n = 0;
	if (sym->is_ifunc)
		return KX_WINDOW_IFUNC;
	if (!kx_landing_part(&p->landings, sym->addr))
		return KX_WINDOW_FOREIGN;
	if (kx_new_threads_have(&p->new_threads, sym))
		return KX_WINDOW_NEW_THREAD;
	if (kx_plan_function(p->planner, sym, &options, &plan, NULL))
		return KX_WINDOW_UNPLANNED;
	kx_plan_free(&plan);
	if (kx_function_scan(p->code, p->syms, sym, &f, NULL))
		return KX_WINDOW_UNPLANNED;
	stack = kx_stack_follow(&f, &touches);
	if (stack)
		why = scanned(p, &f, stack, out);
	free(stack);
	kx_function_free(&f);
	return why;
}

enum kx_window_refusal kx_windows_plan(struct kx_window_planner *p, const struct kx_symbol *sym, struct kx_windows *out)
{
	return plan_by(p, sym, plan_entry_and_exits, out);
}

enum kx_window_refusal kx_windows_plan_entry(struct kx_window_planner *p, const struct kx_symbol *sym, struct kx_window *out)
{
	struct kx_windows windows;
	const enum kx_window_refusal why = plan_by(p, sym, plan_entry, &windows);

	if (!why)
		*out = windows.items[0];
	return why;
}

const char *kx_window_refusal_text(enum kx_window_refusal why)
{
	static const char *const texts[KX_WINDOW_REFUSALS] = {
		[KX_WINDOW_OK] = "yes",
		[KX_WINDOW_UNPLANNED] = "its exits cannot be told for certain",
		[KX_WINDOW_IFUNC] = "it only resolves an indirect function",
		[KX_WINDOW_FOREIGN] = "it is not in the unwind tables, as what compilers make is",
		[KX_WINDOW_NEW_THREAD] = "new threads run it before the C library has told the kernel where to keep their CPU's number",
		[KX_WINDOW_PARTS] = "it jumps into code without a symbol",
		[KX_WINDOW_TABLE] = "it has a switch whose table cannot be read",
		[KX_WINDOW_FIRST] = "it begins with a branch, call or return",
		[KX_WINDOW_TOO_SHORT] = "it ends before 5 bytes behind its first instruction",
		[KX_WINDOW_LANDING] = "a branch lands in the 5 bytes behind its first instruction",
		[KX_WINDOW_CALL] = "a call or branch comes before 5 bytes behind its first instruction",
		[KX_WINDOW_PAGE] = "the 5 bytes behind its first instruction cross a page boundary",
		[KX_WINDOW_RELOCATE] = "an instruction at its beginning cannot be moved",
		[KX_WINDOW_FAULT] = "an instruction that may fault would be moved, and the process has handlers of faults",
		[KX_WINDOW_FRAME] = "how far its stack pointer has moved is unknown",
		[KX_WINDOW_ARGUMENTS] = "its arguments change before a place for a jump",
		[KX_WINDOW_EXIT_LANDING] = "a branch lands in the 5 bytes before an exit",
		[KX_WINDOW_EXIT_CALL] = "a call ends in the 5 bytes before an exit",
		[KX_WINDOW_EXIT_ENTRY] = "the 5 bytes before an exit are its first instruction's or another window's",
		[KX_WINDOW_EXIT_OTHER] = "the 5 bytes before an exit have a branch, a page boundary or an instruction that cannot be moved",
	};

	return texts[why];
}
