// SPDX-License-Identifier: BSD-2-Clause
#include "plan/plan.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/decode.h"
#include "plan/function.h"
#include "plan/plan_entry.h"
#include "plan/plan_exits.h"
#include "plan/probe_cost.h"
#include "binary/xray_sleds.h"

struct kx_planner {
	struct kx_elf *elf;
	const struct kx_symbols *syms;
	struct kx_code *code;
	struct kx_xray_sleds xray;
	uint8_t *touches; /* per symbol: enum touch */
	bool is_go;
};

/* What is known of a function's use of its own return address. */
enum touch { TOUCH_UNKNOWN = 0, TOUCH_NO, TOUCH_YES };

int kx_planner_new(struct kx_elf *elf, const struct kx_symbols *syms, struct kx_planner **out,
		   struct kx_err *err)
{
	struct kx_planner *p = calloc(1, sizeof(*p));
	struct kx_elf_section section;
	int ret;

	if (!p)
		return kx_err_set(err, -ENOMEM, "out of memory while planning %s",
				  kx_elf_path(elf));
	p->elf = elf;
	p->syms = syms;
	p->is_go = kx_elf_get_section(elf, ".gopclntab", &section) ||
		   kx_elf_get_section(elf, ".go.buildinfo", &section);
	p->touches = calloc(syms->count + 1, 1);
	ret = p->touches ? kx_xray_read(elf, &p->xray, err) :
			   kx_err_set(err, -ENOMEM, "out of memory while planning %s",
				      kx_elf_path(elf));
	if (!ret)
		ret = kx_code_new(elf, syms, &p->code, err);
	if (ret) {
		kx_planner_free(p);
		return ret;
	}
	*out = p;
	return 0;
}

void kx_planner_free(struct kx_planner *p)
{
	if (!p)
		return;
	kx_code_free(p->code);
	kx_xray_free(&p->xray);
	free(p->touches);
	free(p);
}

void kx_planner_rest(struct kx_planner *p)
{
	kx_code_free(p->code);
	p->code = NULL;
	kx_elf_release_pages(p->elf);
}

size_t kx_planner_xray_functions(const struct kx_planner *p, const uint64_t **addrs)
{
	*addrs = p->xray.functions;
	return p->xray.nfunctions;
}

/* `mov $15 (rt_sigreturn), %eax or %rax; syscall`: entered with a signal frame on the stack. */
static bool is_signal_trampoline(const struct kx_planner *p, uint64_t addr)
{
	static const uint8_t mov_eax[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t mov_rax[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	const uint8_t *code;

	code = kx_elf_code(p->elf, addr, sizeof(mov_eax));
	if (code && !memcmp(code, mov_eax, sizeof(mov_eax)))
		return true;
	code = kx_elf_code(p->elf, addr, sizeof(mov_rax));
	return code && !memcmp(code, mov_rax, sizeof(mov_rax));
}

/*
 * Functions of C libraries that aren't entered by a call, so that the stack doesn't point at
 * a return address: the dynamic linker's lazy binding finds the PLT's words there.
 */
static bool is_entered_otherwise(const struct kx_symbol *sym)
{
	static const char *const globs[] = {
		"_dl_runtime_resolve*", "_dl_runtime_profile*", "_dl_start_user",
		"__start_context",      "__restore_rt",
	};

	for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++) {
		if (!fnmatch(globs[i], sym->name, 0))
			return true;
		for (size_t k = 0; sym->aliases && sym->aliases[k]; k++)
			if (!fnmatch(globs[i], sym->aliases[k], 0))
				return true;
	}
	return false;
}

/* Why a return probe on @sym is harmful in any process; NULL if it is not. */
static const char *return_hazard(const struct kx_planner *p, const struct kx_symbol *sym,
				 bool touches_return)
{
	if (sym->addr == kx_elf_entry(p->elf) || is_entered_otherwise(sym) ||
	    is_signal_trampoline(p, sym->addr))
		return "it is not entered by a call, so there is no return address to take";
	if (touches_return)
		return "it uses its own return address, which a return probe would replace";
	return NULL;
}

/* Decodes the sled at @addr; false if a damaged table points between instructions or elsewhere. */
static bool decode_sled(const struct kx_planner *p, const struct kx_function_code *f, uint64_t addr,
			struct kx_insn *insn)
{
	return kx_function_contains(f, addr) && kx_code_length(p->code, addr) &&
	       kx_code_decode(p->code, addr, insn);
}

/* Takes the binary's own sleds for @out; false if there is no entry sled. */
static bool xray_entry(const struct kx_planner *p, const struct kx_function_code *f,
		       const struct kx_plan_options *options, struct kx_plan *out)
{
	size_t n;
	const struct kx_xray_sled *sleds = kx_xray_find(&p->xray, f->parts[0].from, &n);
	struct kx_insn insn;
	enum kx_cost cost;

	for (size_t i = 0; i < n; i++) {
		if (sleds[i].kind != KX_XRAY_ENTRY && sleds[i].kind != KX_XRAY_ENTRY_ARGS)
			continue;
		if (!decode_sled(p, f, sleds[i].addr, &insn) ||
		    !kx_probe_cost(&insn, options, &cost))
			continue;
		out->entry = (struct kx_sled){
			.addr = sleds[i].addr,
			.kind = KX_SLED_ENTRY,
			.cost = (uint8_t)cost,
		};
		out->args = 6; /* the sled is the function's first instruction */
		out->xray = true;
		return true;
	}
	return false;
}

static int xray_exits(const struct kx_planner *p, const struct kx_function_code *f,
		      struct kx_plan *out, struct kx_err *err)
{
	size_t n;
	const struct kx_xray_sled *sleds = kx_xray_find(&p->xray, f->parts[0].from, &n);
	struct kx_insn insn;
	enum kx_cost cost;
	int ret;

	for (size_t i = 0; i < n; i++) {
		struct kx_sled sled = { .addr = sleds[i].addr, .kind = sleds[i].kind };

		if (sleds[i].kind != KX_XRAY_EXIT && sleds[i].kind != KX_XRAY_TAIL)
			continue;
		if (!decode_sled(p, f, sled.addr, &insn) ||
		    !kx_probe_cost(&insn, NULL, &cost))
			return kx_err_set(err, -EOPNOTSUPP,
					  "the kernel takes no probe on its XRay sled at +0x%" PRIx64,
					  sled.addr - f->parts[0].from);
		sled.cost = (uint8_t)cost;
		ret = kx_plan_add_exit(out, &sled, err);
		if (ret)
			return ret;
	}
	return 0;
}

static void drop_exits(struct kx_plan *plan)
{
	free(plan->exits);
	plan->exits = NULL;
	plan->nexits = 0;
}

/* Decides how exits are recorded; @inst_ret, @inst_err: whether instruction exits could be placed. */
static int choose_exits(const struct kx_planner *p, const struct kx_symbol *sym,
			const struct kx_plan_options *options, bool touches_return, int inst_ret,
			const struct kx_err *inst_err, struct kx_plan *out, struct kx_err *err)
{
	const char *hazard = return_hazard(p, sym, touches_return);
	const bool harmless = !options->returns_forbidden && !hazard &&
			      (options->returns_harmless || !out->makes_calls);

	switch (options->exits) {
	case KX_EXITS_NONE:
		out->exit_kind = KX_EXITS_NONE;
		break;
	case KX_EXITS_RETURN:
		if (hazard)
			return kx_err_set(err, -EOPNOTSUPP, "%s", hazard);
		out->exit_kind = KX_EXITS_RETURN;
		break;
	default:
		out->exit_kind = options->exits == KX_EXITS_AUTO && harmless ?
					 KX_EXITS_RETURN :
					 KX_EXITS_INSTRUCTION;
		break;
	}
	if (out->exit_kind != KX_EXITS_INSTRUCTION) {
		drop_exits(out);
		return 0;
	}
	return inst_ret ? kx_err_set(err, inst_ret, "%s", inst_err->text) : 0;
}

static int plan_scanned(const struct kx_planner *p, const struct kx_symbol *sym,
			const struct kx_function_code *f, const struct kx_stack *s,
			bool touches_return, const struct kx_plan_options *options,
			struct kx_plan *out, struct kx_err *err)
{
	const uint64_t body = p->is_go ? kx_go_body(f) : sym->addr;
	struct kx_err inst_err = { 0 };
	struct kx_jumps jumps;
	int ret, inst_ret;

	ret = kx_jumps_classify(f, s, p->elf, &jumps, err);
	if (ret)
		return ret;
	out->instructions = f->instructions;
	out->has_loop = f->has_loop;
	out->makes_calls = f->calls || f->leaves || jumps.any_outside;
	if (xray_entry(p, f, options, out))
		;
	else if (f->loops_at_entry && body == sym->addr)
		ret = kx_err_set(err, -EOPNOTSUPP, "a loop starts at its first instruction, so that "
				 "each turn would look like a call");
	else
		ret = kx_plan_entry(f, body, jumps.any_inside, KX_STACK_UNMOVED, options, out, err);
	if (!ret) {
		inst_ret = kx_plan_exits(f, s, &jumps, body != sym->addr, out, &inst_err);
		if (out->xray && inst_ret != -ENOMEM) {
			drop_exits(out);
			inst_ret = xray_exits(p, f, out, &inst_err);
		}
		ret = inst_ret == -ENOMEM ? kx_err_set(err, inst_ret, "%s", inst_err.text) :
					    choose_exits(p, sym, options, touches_return, inst_ret,
							 &inst_err, out, err);
	}
	/* Without a return probe, the entry's may be at a cheaper place inside the frame. */
	if (!ret && !out->xray && out->exit_kind != KX_EXITS_RETURN &&
	    out->entry.cost == KX_COST_STEPPED)
		ret = kx_plan_entry(f, body, jumps.any_inside, KX_STACK_FRAME, options, out, err);
	kx_jumps_free(&jumps);
	return ret;
}

/*
 * Whether the function at the end of a tail jump uses its return address, which is that of the
 * function that jumps as well: glibc's setjmp and _setjmp are such jumps to __sigsetjmp. Chains
 * longer than @depth are none that compilers or libraries make.
 */
static int tail_touches_return(struct kx_planner *p, const struct kx_function_code *f, int depth,
			       bool *touches)
{
	for (size_t i = 0; i < f->nparts && !*touches; i++) {
		for (uint64_t pos = f->parts[i].from; pos < f->parts[i].to && !*touches;
		     pos += kx_code_length(f->code, pos)) {
			const struct kx_symbol *sym;
			struct kx_function_code next;
			struct kx_stack *s;
			bool conditional;
			uint64_t target;
			uint8_t *known;
			int ret = 0;

			if (kx_code_class(f->code, pos) != KX_INSN_BRANCH ||
			    !kx_code_branch(f->code, pos, &target, &conditional) ||
			    kx_function_contains(f, target))
				continue;
			sym = kx_symbols_find(f->syms, target);
			if (!sym || sym->addr != target)
				continue;
			known = &p->touches[sym - p->syms->items];
			if (*known == TOUCH_UNKNOWN && depth > 0 &&
			    !kx_function_scan(p->code, p->syms, sym, &next, NULL)) {
				bool found;

				*known = TOUCH_NO; /* for jumps in a circle */
				s = kx_stack_follow(&next, &found);
				if (!s)
					return -ENOMEM;
				free(s);
				ret = found ? 0 : tail_touches_return(p, &next, depth - 1, &found);
				*known = found ? TOUCH_YES : TOUCH_NO;
			}
			if (ret)
				return ret;
			*touches = *known == TOUCH_YES;
		}
	}
	return 0;
}

int kx_plan_function(struct kx_planner *p, const struct kx_symbol *sym,
		     const struct kx_plan_options *options, struct kx_plan *out,
		     struct kx_err *err)
{
	struct kx_function_code f;
	struct kx_stack *s;
	bool touches_return;
	int ret;

	*out = (struct kx_plan){ 0 };
	if (!p->code) {
		ret = kx_code_new(p->elf, p->syms, &p->code, err);
		if (ret)
			return ret;
	}
	ret = kx_function_scan(p->code, p->syms, sym, &f, err);
	if (ret)
		return ret;
	s = kx_stack_follow(&f, &touches_return);
	if (!s)
		return kx_err_set(err, -ENOMEM, "out of memory while planning %s", sym->name);
	ret = touches_return ? 0 : tail_touches_return(p, &f, 4, &touches_return);
	if (ret)
		kx_err_set(err, ret, "out of memory while planning %s", sym->name);
	else
		ret = plan_scanned(p, sym, &f, s, touches_return, options, out, err);
	free(s);
	if (ret)
		kx_plan_free(out);
	return ret;
}

void kx_plan_free(struct kx_plan *plan)
{
	free(plan->exits);
	*plan = (struct kx_plan){ 0 };
}

const char *kx_cost_name(enum kx_cost cost)
{
	static const char *const names[] = { "nop5", "emulated", "stepped", "kernel" };

	return names[cost];
}

const char *kx_exits_name(enum kx_exits kind)
{
	static const char *const names[] = { "auto", "return", "instruction", "none" };

	return names[kind];
}

const char *kx_insn_kind_name(enum kx_insn_kind kind)
{
	static const char *const names[KX_INSN_KINDS] = {
		[KX_INSN_NOP] = "nop",
		[KX_INSN_PUSH] = "push",
		[KX_INSN_JUMP_NEAR] = "jmp",
		[KX_INSN_CONDITIONAL] = "jcc",
		[KX_INSN_CALL_NEAR] = "call",
		[KX_INSN_LONG_NOP] = "long nop",
		[KX_INSN_MOVE_FRAME] = "mov %rsp,%rbp",
		[KX_INSN_SUB_STACK] = "sub $n,%rsp",
	};

	return names[kind];
}
