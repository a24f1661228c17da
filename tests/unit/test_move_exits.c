// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/plan.h"
#include "assembled.h"

/* Exits at the jumps that lead to return instructions (plan/move_exits.h). Lengths are in the comments. */
static const char source[] =
	".macro fn name\n .p2align 4\n .globl \\name\n .hidden \\name\n .type \\name,@function\n\\name:\n.endm\n"
	".macro end name\n .size \\name,.-\\name\n.endm\n"
	".macro check\n test %edi,%edi\n.endm\n"
	".text\n"
	"fn both\n check\n je 1f\n mov $1,%eax\n ret\n1: xor %eax,%eax\n ret\nend both\n" /* 2 2 5 1 2 1 */
	"fn guarded\n sub $24,%rsp\n call both\n cmp $1,%eax\n jne 1f\n add $24,%rsp\n ret\n1: call both\n"
	"end guarded\n" /* 4 5 3 2 4 1 5 */
	"fn early\n push %rbx\n check\n je 1f\n call both\n1: pop %rbx\n ret\nend early\n" /* 1 2 2 5 1 1 */
	"fn saved\n push %rbx\n push %r12\n sub $8,%rsp\n call both\n check\n jle 1f\n call both\n jmp 1f\n nop\n"
	"1: lea 8(%rsp),%rsp\n pop %r12\n pop %rbx\n ret\nend saved\n" /* 1 2 4 5 2 2 5 2 1 5 2 1 1 */
	"fn loop\n mov $10,%ecx\n1: dec %ecx\n jne 1b\n ret\nend loop\n"
	/* a jump back that is no loop */
	"fn backwards\n push %rbx\n check\n je 2f\n1: pop %rbx\n ret\n2: call both\n jmp 1b\nend backwards\n" /* 1 2 2 1 1 5 2 */
	"fn in_loop\n push %rbx\n1: call both\n check\n je 2f\n dec %ebx\n jmp 1b\n2: pop %rbx\n ret\nend in_loop\n"
	"fn two_passed\n push %rbx\n check\n je 1f\n call both\n js 1f\n call both\n jmp 1f\n nop\n1: pop %rbx\n ret\n"
	"end two_passed\n"
	/* after a call that returns, an alignment that is run */
	"fn aligned\n push %rbx\n check\n je 1f\n call both\n js 1f\n call both\n nop\n jmp 1f\n nop\n1: pop %rbx\n ret\n"
	"end aligned\n"
	"fn tail_or_ret\n check\n je both\n ret\nend tail_or_ret\n"
	"fn leaves\n push %rbp\n mov %rsp,%rbp\n check\n je 1f\n call both\n jmp 1f\n nop\n1: leave\n ret\nend leaves\n"
	"fn depends\n check\n je 1f\n sub %rax,%rsp\n jmp 1f\n nop\n1: add %rax,%rsp\n ret\nend depends\n"
	"fn slow_end\n check\n je 1f\n nop\n jmp 1f\n nop\n1: lock incl (%rsi)\n ret\nend slow_end\n"
	"fn marked\n check\n je 1f\n nop\n jmp 1f\n nop\n1: endbr64\n ret\nend marked\n"
	/* an exception may land at 2 */
	"fn landing\n check\n je 1f\n jmp 1f\n2: pop %rbx\n ret\n1: ret\nend landing\n"
	"fn called\n check\n je 1f\n call 1f\n jmp 1f\n nop\n1: ret\nend called\n"
	"fn by_count\n jrcxz 1f\n jmp 1f\n nop\n1: ret\nend by_count\n"
	"fn table\n cmp $3,%edi\n ja 1f\n lea 9f(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n jmp *%rax\n"
	"2: nop\n1: xor %eax,%eax\n ret\nend table\n"
	" .section .rodata\n .balign 4\n9: .long 1b-9b,2b-9b\n .text\n"
	"fn entered\n push %rbx\n check\n je .Lentered\n nop\n jmp .Lentered\n nop\n.Lentered: pop %rbx\n ret\nend entered\n"
	"fn enters\n push %rbx\n jmp .Lentered\nend enters\n"
	"fn entered_by_gap\n push %rbx\n check\n je .Lgap\n nop\n jmp .Lgap\n nop\n.Lgap: pop %rbx\n ret\nend entered_by_gap\n"
	" .skip 300,0x90\n jmp .Lgap\n .skip 300,0x90\n"
	"fn far_end\n check\n je 1f\n nop\n jmp 1f\n nop\n1: .rept 22\n inc %eax\n .endr\n ret\nend far_end\n"
	"fn too_far_end\n check\n je 1f\n nop\n jmp 1f\n nop\n1: .rept 23\n inc %eax\n .endr\n ret\nend too_far_end\n"
	"fn frame_first\n sub $8,%rsp\n call both\n check\n je 1f\n call both\n jmp 1f\n nop\n1: add $8,%rsp\n ret\n"
	"end frame_first\n" /* 4 5 2 2 5 2 1 4 1 */
	"fn frame_then_tail\n sub $8,%rsp\n call both\n check\n je 1f\n add $8,%rsp\n jmp both\n1: add $8,%rsp\n ret\n"
	"end frame_then_tail\n"
	"fn frame_then_virtual\n sub $8,%rsp\n call both\n add $8,%rsp\n mov (%rdi),%rax\n jmp *16(%rax)\nend frame_then_virtual\n"
	"fn uses_return\n sub $8,%rsp\n mov 8(%rsp),%rdi\n call both\n check\n je 1f\n call both\n jmp 1f\n nop\n"
	"1: add $8,%rsp\n ret\nend uses_return\n"
	"fn frame_then_ret\n sub $8,%rsp\n call both\n add $8,%rsp\n ret\nend frame_then_ret\n" /* 4 5 4 1 */
	"fn never\n sub $8,%rsp\n call both\nend never\n"
	/* the code behind it, which is run, may return */
	"fn runs_on\n sub $8,%rsp\n call both\n add $8,%rsp\nend runs_on\n nop\n ret\n"
	"fn runs_on_at_jump\n sub $8,%rsp\n call both\n add $8,%rsp\n check\n je runs_on_at_jump+4\nend runs_on_at_jump\n nop\n ret\n"
	/* as may a part without a symbol, or one that a table leads to */
	"fn part_elsewhere\n sub $8,%rsp\n call both\n check\n je .Lpart\n add $8,%rsp\n ret\nend part_elsewhere\n"
	" .p2align 4\n.Lpart: call both\n add $8,%rsp\n ret\n"
	"fn table_inside\n sub $8,%rsp\n push %rbx\n call both\n lea 9f(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n"
	" jmp *%rax\n1: pop %rbx\n add $8,%rsp\n ret\nend table_inside\n"
	" .section .rodata\n .balign 4\n9: .long 1b-9b,1b-9b\n .text\n"
	"fn leaf_ret\n sub $8,%rsp\n nop\n xor %eax,%eax\n mov %rdi,(%rsp)\n add $8,%rsp\n ret\nend leaf_ret\n"
	"fn pops_result\n push %rbx\n check\n je 1f\n nop\n nop\n jmp 1f\n nop\n1: pop %rax\n ret\nend pops_result\n"
	"fn multiplies\n check\n je 1f\n nop\n jmp 1f\n nop\n1: mul %rsi\n ret\nend multiplies\n"
	"fn writes_byte\n check\n je 1f\n nop\n jmp 1f\n nop\n1: sete %ah\n ret\nend writes_byte\n"
	"fn reads_result\n check\n je 1f\n nop\n jmp 1f\n nop\n1: mov %rax,%rcx\n ret\nend reads_result\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static struct kx_elf *elf;
static struct kx_symbols syms;
static struct kx_planner *planner;

static int build(void **state)
{
	struct kx_err err = { 0 };

	if (target_setup(state))
		return -1;
	assemble(source);
	if (kx_elf_open(in_dir("f.so"), &elf, &err) || kx_symbols_read(elf, NULL, &syms, &err) ||
	    kx_planner_new(elf, &syms, 1, NULL, &planner, &err))
		fail_msg("%s", err.text);
	return 0;
}

static int cleanup(void **state)
{
	kx_planner_free(planner);
	kx_symbols_free(&syms);
	kx_elf_close(elf);
	return target_teardown(state);
}

static uint64_t plan(const char *name, const struct kx_plan_options *options, struct kx_plan *out)
{
	const struct kx_symbol *s = symbol_named(&syms, name);
	struct kx_err err = { 0 };

	if (kx_plan_function(planner, s, options, out, &err))
		fail_msg("%s: %s", name, err.text);
	return s->addr;
}

/* @exits: "+OFFSET" each, with "?CONDITION" if it has one, "@FRAME" if that is not 0; "ret" if one is single-stepped. */
static void exits_with(const char *name, const struct kx_plan_options *options, const char *exits)
{
	bool stepped = false, emulated = true;
	char text[256] = "";
	struct kx_plan p;
	uint64_t start = plan(name, options, &p);
	size_t n = 0;

	for (size_t i = 0; i < p.nexits; i++) {
		const struct kx_sled *s = &p.exits[i];

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s+%d", n ? " " : "",
				      s->kind == KX_SLED_TAIL ? "tail" : "", (int)(s->addr - start));
		if (s->conditional)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "?%x", s->condition);
		if (s->frame)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "@%d", s->frame);
		stepped |= s->cost == KX_COST_STEPPED;
		emulated &= s->cost == KX_COST_EMULATED;
	}
	if (strcmp(exits, stepped ? "ret" : text) || p.exits_emulated != emulated)
		fail_msg("%s: %s, not %s", name, text, exits);
	kx_plan_free(&p);
}

static void exits_are(const char *name, const char *exits)
{
	exits_with(name, &(struct kx_plan_options){ .exits = KX_EXITS_INSTRUCTION }, exits);
}

static void test_moved(void **state)
{
	(void)state;
	exits_are("both", "+2");
	/* je, as the jne does not leave */
	exits_are("guarded", "+12?4@24");
	exits_are("backwards", "+3?5@8 +12@8");
	exits_are("saved", "+14?e@24 +21@24");
	exits_are("far_end", "+2?4 +5");
}

static void test_not_moved(void **state)
{
	static const char *const kept[] = { "early",	"loop",	   "in_loop", "two_passed", "aligned", "tail_or_ret",
					    "leaves",	"depends", "slow_end", "marked",    "landing", "called",
					    "by_count", "table",   "entered", "entered_by_gap", "too_far_end" };

	(void)state;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		exits_are(kept[i], "ret");
}

/* At an exit rax has to be the result. */
static void test_results(void **state)
{
	static const struct kx_plan_options options = { .exits = KX_EXITS_INSTRUCTION, .results = true };
	static const char *const kept[] = { "both", "pops_result", "multiplies", "writes_byte" };

	(void)state;
	exits_are("pops_result", "+3?4@8 +7@8");
	exits_are("multiplies", "+2?4 +5");
	exits_are("writes_byte", "+2?4 +5");
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		exits_with(kept[i], &options, "ret");
	exits_with("saved", &options, "+14?e@24 +21@24");
	exits_with("reads_result", &options, "+2?4 +5");
}

/* A return probe would need the entry at the instruction that takes the frame. */
static void test_in_place_of_return_probes(void **state)
{
	static const struct kx_plan_options harmless = { .returns_harmless = true };
	static const struct kx_plan_options returns = { .exits = KX_EXITS_RETURN }, risky = { 0 };
	static const char *const kept[] = { "frame_then_tail", "frame_then_virtual", "runs_on", "runs_on_at_jump", "part_elsewhere", "table_inside", "both", "saved" };
	struct kx_plan p;
	uint64_t start;

	(void)state;
	start = plan("frame_first", &harmless, &p);
	assert_int_equal(p.exit_kind, KX_EXITS_INSTRUCTION);
	assert_int_equal(p.entry.addr - start, 4);
	assert_int_equal(p.entry.cost, KX_COST_EMULATED);
	assert_int_equal(p.frame, 8);
	assert_int_equal(p.nexits, 2);
	kx_plan_free(&p);
	start = plan("frame_first", &returns, &p);
	assert_int_equal(p.exit_kind, KX_EXITS_RETURN);
	assert_int_equal(p.entry.addr, start);
	assert_int_equal(p.frame, 0);
	assert_int_equal(p.nexits, 0);
	assert_true(p.exits_emulated);
	kx_plan_free(&p);
	/* a single step at the end instead of at the beginning, where it would be part of the call's duration */
	start = plan("frame_then_ret", &harmless, &p);
	assert_int_equal(p.exit_kind, KX_EXITS_INSTRUCTION);
	assert_int_equal(p.entry.addr - start, 4);
	assert_int_equal(p.nexits, 1);
	assert_int_equal(p.exits[0].addr - start, 13);
	assert_int_equal(p.exits[0].cost, KX_COST_STEPPED);
	kx_plan_free(&p);
	start = plan("never", &harmless, &p);
	assert_int_equal(p.exit_kind, KX_EXITS_INSTRUCTION);
	assert_int_equal(p.entry.addr - start, 4);
	assert_int_equal(p.nexits, 0);
	kx_plan_free(&p);
	plan("leaf_ret", &risky, &p);
	assert_int_equal(p.exit_kind, KX_EXITS_INSTRUCTION);
	assert_int_equal(p.entry.cost, KX_COST_EMULATED);
	kx_plan_free(&p);
	/* a return probe's exit comes after the function to which it jumps; exits that are not seen; nothing is gained */
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		plan(kept[i], &harmless, &p);
		if (p.exit_kind != KX_EXITS_RETURN)
			fail_msg("%s: no return probe", kept[i]);
		kx_plan_free(&p);
	}
	plan("uses_return", &harmless, &p);
	assert_int_equal(p.exit_kind, KX_EXITS_INSTRUCTION);
	kx_plan_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_not_moved),
		cmocka_unit_test(test_results),
		cmocka_unit_test(test_in_place_of_return_probes),
	};

	return cmocka_run_group_tests(tests, build, cleanup);
}
