// SPDX-License-Identifier: BSD-2-Clause
#include "plan/plan.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/decode.h"
#include "plan/function.h"
#include "plan/move_exits.h"
#include "plan/plan_entry.h"
#include "plan/plan_exits.h"
#include "plan/probe_cost.h"
#include "binary/xray_sleds.h"

struct kx_planner {
	struct kx_elf *elf;
	const struct kx_symbols *syms;
	struct kx_code *code;
	struct kx_xray_sleds xray;
	uint8_t *touches; /* per symbol: TOUCH_...; read and written by several threads, facts only */
	size_t threads;
	bool is_go;
};

/*
 * What is known of a function's use of its return address: that of those that use it the nearest is a number of tail
 * jumps away (0: itself), or that none is within that number. 0: nothing.
 */
#define TOUCH_AT 0x10
#define TOUCH_NOT_WITHIN 0x20
#define TOUCH_HOPS 0x0f
/* Longer chains of tail jumps are none that compilers or libraries make. */
#define MAX_HOPS 4

int kx_planner_new(struct kx_elf *elf, const struct kx_symbols *syms, size_t threads, struct kx_code_memory *memory,
		   struct kx_planner **out, struct kx_err *err)
{
	struct kx_planner *p = calloc(1, sizeof(*p));
	struct kx_elf_section section;
	int ret;

	if (!p)
		return kx_err_set(err, -ENOMEM, "out of memory while planning %s",
				  kx_elf_path(elf));
	p->elf = elf;
	p->syms = syms;
	p->threads = threads;
	p->is_go = kx_elf_get_section(elf, ".gopclntab", &section) ||
		   kx_elf_get_section(elf, ".go.buildinfo", &section);
	p->touches = calloc(syms->count + 1, 1);
	ret = p->touches ? kx_xray_read(elf, &p->xray, err) :
			   kx_err_set(err, -ENOMEM, "out of memory while planning %s",
				      kx_elf_path(elf));
	if (!ret)
		ret = kx_code_new(elf, syms, threads, memory, &p->code, err);
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

const struct kx_code *kx_planner_code(const struct kx_planner *p)
{
	return p->code;
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

	/* not of C++ */
	if (sym->name[0] == '_' && sym->name[1] == 'Z' && !sym->aliases)
		return false;
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

static bool all_emulated(const struct kx_plan *plan)
{
	for (size_t i = 0; i < plan->nexits; i++)
		if (plan->exits[i].cost == KX_COST_STEPPED)
			return false;
	return plan->nexits > 0;
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
	const bool harmless = !options->returns_forbidden && (options->returns_harmless || !out->makes_calls);
	const char *hazard;

	switch (options->exits) {
	case KX_EXITS_NONE:
		out->exit_kind = KX_EXITS_NONE;
		break;
	case KX_EXITS_RETURN:
		hazard = return_hazard(p, sym, touches_return);
		if (hazard)
			return kx_err_set(err, -EOPNOTSUPP, "%s", hazard);
		out->exit_kind = KX_EXITS_RETURN;
		break;
	default:
		/* the hazard last: it reads the function's name */
		out->exit_kind = options->exits == KX_EXITS_AUTO && harmless && !return_hazard(p, sym, touches_return) ?
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

/* The function's own exits. @restarts: see kx_plan_exits; @results: see struct kx_plan_options. */
static int find_exits(const struct kx_planner *p, const struct kx_function_code *f, const struct kx_stack *s,
		      const struct kx_jumps *jumps, bool restarts, bool results, struct kx_plan *out, struct kx_err *err)
{
	int ret = kx_plan_exits(f, s, jumps, restarts, out, err);

	if (out->xray && ret != -ENOMEM) {
		drop_exits(out);
		ret = xray_exits(p, f, out, err);
	} else if (!ret && !p->is_go) {
		ret = kx_plan_move_exits(f, jumps, results, out, err);
	}
	out->exits_emulated = all_emulated(out);
	return ret;
}

static int plan_entry(const struct kx_planner *p, const struct kx_function_code *f, uint64_t body, const struct kx_jumps *jumps,
		      enum kx_stack_rule rule, const struct kx_plan_options *options, struct kx_plan *out, struct kx_err *err)
{
	return (p->is_go ? kx_plan_go_entry : kx_plan_entry)(f, body, jumps->any_inside, rule, options, out, err);
}

/*
 * Whether instruction exits are better than a return probe: that needs the entry to be where the stack has not moved yet, at
 * an instruction that is single-stepped. With the entry inside the frame at most a return instruction is, which takes as
 * long, but after the call instead of in its recorded duration: of an empty call 0.4 us are left of that in nine of ten cases
 * after correction, instead of 5. They must see the same: a tail jump ends a call earlier than a return probe does, and code that
 * is not known to be the function's may return, too.
 */
static bool prefers_instructions(const struct kx_planner *p, const struct kx_function_code *f, uint64_t body,
				 const struct kx_jumps *jumps, const struct kx_plan_options *options, struct kx_plan *out)
{
	struct kx_plan inside = *out;

	if (options->exits != KX_EXITS_AUTO || out->xray || out->entry.cost != KX_COST_STEPPED || out->tail_calls || f->leaves ||
	    jumps->any_inside || kx_function_runs_on(f) ||
	    plan_entry(p, f, body, jumps, KX_STACK_FRAME, options, &inside, NULL) || inside.entry.cost == KX_COST_STEPPED)
		return false;
	*out = inside;
	out->exit_kind = KX_EXITS_INSTRUCTION;
	return true;
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
		ret = plan_entry(p, f, body, &jumps, KX_STACK_UNMOVED, options, out, err);
	if (!ret) {
		inst_ret = find_exits(p, f, s, &jumps, body != sym->addr, options->results, out, &inst_err);
		if (inst_ret == -ENOMEM)
			ret = kx_err_set(err, inst_ret, "%s", inst_err.text);
		else if (inst_ret || !prefers_instructions(p, f, body, &jumps, options, out))
			ret = choose_exits(p, sym, options, touches_return, inst_ret, &inst_err, out, err);
	}
	/* Without a return probe, the entry's may be at a cheaper place inside the frame. */
	if (!ret && !out->xray && out->exit_kind != KX_EXITS_RETURN &&
	    out->entry.cost == KX_COST_STEPPED)
		ret = plan_entry(p, f, body, &jumps, KX_STACK_FRAME, options, out, err);
	kx_jumps_free(&jumps);
	return ret;
}

static int tail_touches_return(struct kx_planner *p, const struct kx_function_code *f, unsigned hops,
			       unsigned *nearest);

/* Sets *@nearest to the number of tail jumps, at most @hops, from @sym to the nearest function that uses its return
 * address; MAX_HOPS + 1 if there is none so near. */
static int touches_return_near(struct kx_planner *p, const struct kx_symbol *sym, unsigned hops,
			       unsigned *nearest)
{
	uint8_t *fact = &p->touches[sym - p->syms->items];
	const uint8_t known = __atomic_load_n(fact, __ATOMIC_RELAXED);
	struct kx_function_code f;
	bool touches = false;
	int ret = 0;

	*nearest = MAX_HOPS + 1;
	if ((known & TOUCH_AT) && (known & TOUCH_HOPS) <= hops)
		*nearest = known & TOUCH_HOPS;
	if ((known & TOUCH_AT) || ((known & TOUCH_NOT_WITHIN) && (known & TOUCH_HOPS) >= hops) ||
	    kx_function_scan(p->code, p->syms, sym, &f, NULL))
		return 0;
	if (!known) {
		struct kx_stack *s = kx_stack_follow(&f, &touches);

		ret = s ? 0 : -ENOMEM;
		free(s);
	}
	if (touches)
		*nearest = 0;
	else if (!ret && hops)
		ret = tail_touches_return(p, &f, hops, nearest);
	if (!ret)
		__atomic_store_n(fact, *nearest <= hops ? TOUCH_AT | *nearest : TOUCH_NOT_WITHIN | hops,
				 __ATOMIC_RELAXED);
	kx_function_free(&f);
	return ret;
}

/*
 * The same for a function @f that does not use it itself: the return address of the function at the end of a tail jump
 * is that of the function that jumps as well: glibc's setjmp and _setjmp are such jumps to __sigsetjmp.
 */
static int tail_touches_return(struct kx_planner *p, const struct kx_function_code *f, unsigned hops,
			       unsigned *nearest)
{
	int ret = 0;

	*nearest = MAX_HOPS + 1;
	for (size_t i = 0; i < f->nways && !ret; i++) {
		const struct kx_way_out *way = &f->ways[i];
		const struct kx_symbol *sym;
		unsigned there;

		if (way->class != KX_INSN_BRANCH || way->target == f->parts[0].from)
			continue;
		sym = kx_symbols_find(f->syms, way->target);
		if (!sym || sym->addr != way->target)
			continue;
		ret = touches_return_near(p, sym, hops - 1, &there);
		if (there < hops && there + 1 < *nearest)
			*nearest = there + 1;
	}
	return ret;
}

/* Whether a return probe may be chosen for @f, which must not use its return address then. */
static bool may_take_return(const struct kx_function_code *f, const struct kx_plan_options *options)
{
	if (options->exits != KX_EXITS_AUTO)
		return options->exits == KX_EXITS_RETURN;
	return !options->returns_forbidden && (options->returns_harmless || !f->calls);
}

/* Sets *@touches to whether @f, the function @sym, or one that it ends in a jump to uses its return address. Errors: -ENOMEM. */
static int find_touch(struct kx_planner *p, const struct kx_symbol *sym, const struct kx_function_code *f, bool itself,
		      bool *touches)
{
	unsigned nearest = 0;
	int ret = itself ? 0 : tail_touches_return(p, f, MAX_HOPS, &nearest);

	*touches = nearest <= MAX_HOPS;
	if (!ret)
		__atomic_store_n(&p->touches[sym - p->syms->items],
				 *touches ? TOUCH_AT | nearest : TOUCH_NOT_WITHIN | MAX_HOPS, __ATOMIC_RELAXED);
	return ret;
}

/* The walk over the stack's depths takes as long as all else, and most functions need none where return probes are harmful. */
static int plan_function(struct kx_planner *p, const struct kx_symbol *sym, const struct kx_function_code *f,
			 const struct kx_plan_options *options, struct kx_plan *out,
			 struct kx_err *err)
{
	const bool may_return = may_take_return(f, options);
	bool touches_return = false;
	struct kx_stack *s = NULL;
	int ret = 0;

	/* the depth decides what jumps out are for */
	if (may_return || f->leaves || f->jumps) {
		s = kx_stack_follow(f, &touches_return);
		ret = s ? 0 : -ENOMEM;
	}
	if (!ret && may_return)
		ret = find_touch(p, sym, f, touches_return, &touches_return);
	ret = ret ? kx_err_set(err, ret, "out of memory while planning %s", sym->name) :
		    plan_scanned(p, sym, f, s, touches_return, options, out, err);
	free(s);
	return ret;
}

int kx_plan_function(struct kx_planner *p, const struct kx_symbol *sym,
		     const struct kx_plan_options *options, struct kx_plan *out,
		     struct kx_err *err)
{
	struct kx_function_code f;
	int ret;

	*out = (struct kx_plan){ 0 };
	if (!p->code) {
		ret = kx_code_new(p->elf, p->syms, p->threads, NULL, &p->code, err);
		if (ret)
			return ret;
	}
	ret = kx_function_scan(p->code, p->syms, sym, &f, err);
	if (ret)
		return ret;
	ret = plan_function(p, sym, &f, options, out, err);
	kx_function_free(&f);
	if (ret)
		kx_plan_free(out);
	return ret;
}

void kx_plan_free(struct kx_plan *plan)
{
	free(plan->exits);
	*plan = (struct kx_plan){ 0 };
}
