// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "plan/plan.h"
#include "assembled.h"

/*
 * Functions with known bytes. The expected offsets follow from the instruction lengths in the
 * comments.
 */
static const char source[] =
	".macro fn name\n .p2align 4\n .globl \\name\n .hidden \\name\n"
	" .type \\name,@function\n\\name:\n.endm\n"
	".macro end name\n .size \\name,.-\\name\n.endm\n"
	".text\n"
	"fn endbr_push\n endbr64\n push %rbp\n pop %rbp\n ret\nend endbr_push\n" /* 4 1 1 1 */
	"fn push_r12\n push %r12\n pop %r12\n ret\nend push_r12\n"               /* 2 2 1 */
	"fn mov_xor_push\n mov %rdi,%rax\n xor %esi,%esi\n push %rbx\n pop %rbx\n ret\n" /* 3 2 1 1 */
	"end mov_xor_push\n"
	"fn loop_behind\n mov $10,%ecx\n1: dec %ecx\n jne 1b\n ret\nend loop_behind\n" /* 5 2 2 */
	"fn entered_sideways\n mov %rdi,%rax\n.Lside: mov %rsi,%rcx\n push %rbx\n pop %rbx\n ret\n"
	"end entered_sideways\n"
	"fn jumps_into\n push %rbx\n pop %rbx\n jmp .Lside\nend jumps_into\n"
	/* from code that has no symbol */
	"fn entered_by_jump\n mov %rdi,%rax\n.Ljump: mov %rsi,%rcx\n push %rbx\n pop %rbx\n ret\nend entered_by_jump\n"
	" .skip 300,0x90\n jmp .Ljump\n .skip 300,0x90\n"
	"fn entered_by_jcc\n mov %rdi,%rax\n.Ljcc: mov %rsi,%rcx\n push %rbx\n pop %rbx\n ret\nend entered_by_jcc\n"
	" .skip 300,0x90\n jne .Ljcc\n .skip 300,0x90\n"
	"fn entered_by_call\n mov %rdi,%rax\n.Lcall: mov %rsi,%rcx\n push %rbx\n pop %rbx\n ret\nend entered_by_call\n"
	" .skip 300,0x90\n call .Lcall\n .skip 300,0x90\n"
	"fn entered_by_loop\n mov %rdi,%rax\n.Lloop: mov %rsi,%rcx\n push %rbx\n pop %rbx\n ret\nend entered_by_loop\n"
	" .skip 20,0x90\n loop .Lloop\n .skip 300,0x90\n"
	"fn table\n mov %edi,%eax\n cmp $3,%edi\n ja 2f\n lea 9f(%rip),%rdx\n" /* 2 3 2 7 */
	" movslq (%rdx,%rax,4),%rax\n add %rdx,%rax\n jmp *%rax\n"            /* 4 3 2 */
	"1: ret\n2: xor %eax,%eax\n ret\nend table\n"                          /* 1 2 1 */
	" .section .rodata\n .balign 4\n9: .long 1b-9b,2b-9b,1b-9b,2b-9b\n .text\n"
	"fn table_push\n mov %edi,%eax\n push %rbx\n lea 9f(%rip),%rdx\n" /* 2 1 7 */
	" movslq (%rdx,%rax,4),%rax\n add %rdx,%rax\n jmp *%rax\n"       /* 4 3 2 */
	"1: pop %rbx\n ret\nend table_push\n"                             /* 1 1 */
	" .section .rodata\n .balign 4\n9: .long 1b-9b\n .text\n"
	"fn cond_tail\n test %edi,%edi\n je endbr_push\n ret\nend cond_tail\n" /* 2 6(or 2) 1 */
	"fn ret_imm\n push %rbx\n pop %rbx\n ret $16\nend ret_imm\n"
	"fn rep_ret\n push %rbx\n pop %rbx\n rep ret\nend rep_ret\n"
	"fn sub_first\n sub $8,%rsp\n call endbr_push\n add $8,%rsp\n ret\nend sub_first\n" /* 4 5 4 */
	"fn sub_two\n sub $8,%rsp\n sub $0x10,%rsp\n xor %esi,%esi\n push %rbx\n pop %rbx\n" /* 4 4 2 1 */
	" add $24,%rsp\n ret\nend sub_two\n"
	"fn sub_jcc\n endbr64\n add $-128,%rsp\n test %rdi,%rdi\n je 1f\n nop\n" /* 4 4 3 2 */
	"1: sub $-128,%rsp\n ret\nend sub_jcc\n"
	"fn sub_most\n sub $248,%rsp\n call endbr_push\n add $248,%rsp\n ret\nend sub_most\n" /* 7 */
	"fn sub_large\n sub $256,%rsp\n call endbr_push\n add $256,%rsp\n ret\nend sub_large\n"
	"fn sub_odd\n sub $12,%rsp\n call endbr_push\n add $12,%rsp\n ret\nend sub_odd\n"
	"fn sub_negative\n sub $-8,%rsp\n call endbr_push\n add $-8,%rsp\n ret\nend sub_negative\n"
	"fn sub_register\n sub %rax,%rsp\n call endbr_push\n add %rax,%rsp\n ret\nend sub_register\n"
	"fn sub_loop\n sub $8,%rsp\n1: call endbr_push\n dec %ebx\n jne 1b\n add $8,%rsp\n ret\n"
	"end sub_loop\n"
	"fn sub_then_lock\n sub $8,%rsp\n lock incl (%rdi)\n call endbr_push\n add $8,%rsp\n ret\n"
	"end sub_then_lock\n"
	"fn sub_table\n sub $8,%rsp\n mov %edi,%eax\n cmp $3,%edi\n ja 1f\n lea 9f(%rip),%rdx\n"
	" movslq (%rdx,%rax,4),%rax\n add %rdx,%rax\n jmp *%rax\n1: add $8,%rsp\n ret\nend sub_table\n"
	" .section .rodata\n .balign 4\n9: .long 1b-9b,1b-9b,1b-9b,1b-9b\n .text\n"
	/* arguments of the call */
	"fn sub_push_call\n sub $8,%rsp\n mov $1,%esi\n push $2\n push 24(%rsp)\n call endbr_push\n" /* 4 5 2 4 */
	" add $24,%rsp\n ret\nend sub_push_call\n"
	"fn push_call\n push $2\n call endbr_push\n add $8,%rsp\n ret\nend push_call\n" /* 2 */
	"fn push_call_most\n sub $240,%rsp\n push $2\n call endbr_push\n add $248,%rsp\n ret\nend push_call_most\n" /* 7 2 */
	"fn push_call_large\n sub $248,%rsp\n push $2\n call endbr_push\n add $256,%rsp\n ret\nend push_call_large\n"
	"fn push_flags\n pushfq\n call endbr_push\n add $8,%rsp\n ret\nend push_flags\n"
	"fn push_word\n pushw $2\n call endbr_push\n add $2,%rsp\n ret\nend push_word\n"
	"fn push_loop\n sub $8,%rsp\n1: push $2\n call endbr_push\n pop %rcx\n dec %ebx\n jne 1b\n add $8,%rsp\n ret\n"
	"end push_loop\n"
	/* a jump of the table may land at the second push */
	"fn push_table\n sub $8,%rsp\n push $2\n push %rdi\n call endbr_push\n lea 9f(%rip),%rdx\n"
	" movslq (%rdx,%rax,4),%rax\n add %rdx,%rax\n jmp *%rax\n1: add $24,%rsp\n ret\nend push_table\n"
	" .section .rodata\n .balign 4\n9: .long 1b-9b,1b-9b\n .text\n"
	"fn far_push\n .rept 32\n inc %eax\n .endr\n push %rbx\n pop %rbx\n ret\nend far_push\n"
	"fn too_far_push\n .rept 33\n inc %eax\n .endr\n push %rbx\n pop %rbx\n ret\nend too_far_push\n"
	"fn long_nop\n nopl (%rax)\n mov %edi,%eax\n ret\nend long_nop\n"
	"fn frame_pointer\n mov %rsp,%rbp\n mov %edi,%eax\n ret\nend frame_pointer\n"
	"fn just_ret\n ret\nend just_ret\n"
	"fn just_jmp\n jmp endbr_push\nend just_jmp\n"
	"fn nop5\n .byte 0x0f,0x1f,0x44,0,0\n ret\nend nop5\n"
	"fn endbr_nop5\n endbr64\n .byte 0x0f,0x1f,0x44,0,0x12\n ret\nend endbr_nop5\n"
	" .p2align 12\n .skip 4093,0x90\n .globl nop5_crosses\n .type nop5_crosses,@function\n"
	"nop5_crosses: .byte 0x0f,0x1f,0x44,0,0\n ret\nend nop5_crosses\n"
	"fn nop5_red_zone\n mov %edi,-4(%rsp)\n .byte 0x0f,0x1f,0x44,0,0\n ret\nend nop5_red_zone\n"
	"fn lock_first\n lock incl (%rdi)\n push %rbx\n pop %rbx\n ret\nend lock_first\n"
	"fn cpuid_first\n xor %eax,%eax\n cpuid\n push %rbx\n pop %rbx\n ret\nend cpuid_first\n"
	"fn undecodable\n push %rbx\n .byte 0x06\n ret\nend undecodable\n"
	"fn padded\n push %rbx\n pop %rbx\n ret\n int3\n nop\n nopl (%rax)\nend padded\n"
	"fn reads_return\n mov (%rsp),%rax\n ret\nend reads_return\n"
	"fn reads_return_deep\n sub $24,%rsp\n mov 24(%rsp),%rsi\n call endbr_push\n"
	" add $24,%rsp\n ret\nend reads_return_deep\n"
	"fn reads_return_frame\n push %rbp\n mov %rsp,%rbp\n mov 8(%rbp),%rax\n leave\n ret\n"
	"end reads_return_frame\n"
	"fn pops_return\n pop %rdi\n push %rdi\n ret\nend pops_return\n"
	"fn reads_stack_args\n sub $24,%rsp\n mov 32(%rsp),%rsi\n mov 16(%rsp),%rax\n"
	" call endbr_push\n add $24,%rsp\n ret\nend reads_stack_args\n"
	"fn restarts\n dec %edi\n jne restarts\n ret\nend restarts\n" /* 2 2 1 */
	"fn vtable_tail\n mov (%rdi),%rax\n jmp *16(%rax)\nend vtable_tail\n" /* 3 3 */
	"fn pointer_tail\n mov (%rdi),%rax\n mov 16(%rax),%rax\n jmp *%rax\nend pointer_tail\n" /* 3 4 2 */
	"fn passed_tail\n mov %rdi,%rax\n mov %rsi,%rdi\n jmp *%rax\nend passed_tail\n" /* 3 3 2 */
	"fn epilogue_tail\n push %rbx\n mov %rdi,%rbx\n call endbr_push\n mov (%rbx,%rax,8),%rax\n"
	" pop %rbx\n jmp *%rax\nend epilogue_tail\n"                                     /* 1 3 5 4 1 2 */
	"fn fixed_tail\n mov %edi,%edi\n jmp *%rsi\nend fixed_tail\n"
	"fn unclear\n mov (%rdi,%rsi,8),%rax\n jmp *%rax\nend unclear\n" /* 4 2 */
	"fn inside_frame\n push %rbx\n mov (%rdi,%rsi,8),%rax\n jmp *%rax\n pop %rbx\n ret\n"
	"end inside_frame\n"
	"fn loop_out\n dec %ecx\n jrcxz .Lnear\n ret\nend loop_out\n"
	"fn near\n.Lnear: ret\nend near\n"
	"fn sigreturn\n mov $15,%eax\n syscall\nend sigreturn\n"
	" .p2align 4\n .globl with_cold\n .type with_cold,@function\nwith_cold:\n push %rbx\n test %edi,%edi\n js with_cold.cold\n pop %rbx\n ret\nend with_cold\n"
	".section .text.unlikely,\"ax\"\n .type with_cold.cold,@function\n"
	"with_cold.cold: call endbr_push\n pop %rbx\n jmp endbr_push\nend with_cold.cold\n"
	".section .note.GNU-stack,\"\",@progbits\n";

struct binary {
	struct kx_elf *elf;
	struct kx_symbols syms;
	struct kx_planner *planner;
};

static struct binary lib;

static void open_binary(struct binary *b, const char *path)
{
	struct kx_err err = { 0 };

	memset(b, 0, sizeof(*b));
	if (kx_elf_open(path, &b->elf, &err) || kx_symbols_read(b->elf, NULL, &b->syms, &err) ||
	    kx_planner_new(b->elf, &b->syms, 1, NULL, &b->planner, &err))
		fail_msg("%s", err.text);
}

static void close_binary(struct binary *b)
{
	kx_planner_free(b->planner);
	kx_symbols_free(&b->syms);
	kx_elf_close(b->elf);
}

static int build(void **state)
{
	if (target_setup(state))
		return -1;
	assemble(source);
	open_binary(&lib, in_dir("f.so"));
	return 0;
}

static int cleanup(void **state)
{
	close_binary(&lib);
	return target_teardown(state);
}

static const struct kx_plan_options automatic = { .returns_harmless = true,
						  .nop5_optimized = true };
static const struct kx_plan_options risky = { .nop5_optimized = true };
static const struct kx_plan_options instruction = { .exits = KX_EXITS_INSTRUCTION };
static const struct kx_plan_options returns = { .exits = KX_EXITS_RETURN };

static struct kx_plan plan(const struct binary *b, const char *name,
			   const struct kx_plan_options *options)
{
	struct kx_err err = { 0 };
	struct kx_plan p;

	if (kx_plan_function(b->planner, symbol_named(&b->syms, name), options, &p, &err))
		fail_msg("%s: %s", name, err.text);
	return p;
}

static void refuses(const char *name, const struct kx_plan_options *options, int code,
		    const char *text)
{
	struct kx_err err = { 0 };
	struct kx_plan p;

	assert_int_equal(kx_plan_function(lib.planner, symbol_named(&lib.syms, name), options, &p, &err), code);
	assert_int_equal(err.code, code);
	assert_string_equal(err.text, text);
}

static void entry_is(const char *name, uint64_t offset, enum kx_cost cost, unsigned args)
{
	struct kx_plan p = plan(&lib, name, &automatic);

	if (p.entry.addr - symbol_named(&lib.syms, name)->addr != offset || p.entry.cost != cost ||
	    p.args != args || p.entry.kind != KX_SLED_ENTRY)
		fail_msg("%s: entry +%d %s args %u", name,
			 (int)(p.entry.addr - symbol_named(&lib.syms, name)->addr), kx_cost_name(p.entry.cost),
			 p.args);
	kx_plan_free(&p);
}

/* @exits: "ret+6 tail+2?4" with '?' and the condition where there is one, costs as "!" for stepped */
static void exits_are(const char *name, const char *exits)
{
	struct kx_plan p = plan(&lib, name, &instruction);
	const uint64_t start = symbol_named(&lib.syms, name)->addr;
	char text[256] = "";
	size_t n = 0;

	assert_int_equal(p.exit_kind, KX_EXITS_INSTRUCTION);
	for (size_t i = 0; i < p.nexits; i++) {
		const struct kx_sled *s = &p.exits[i];

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%s%d", n ? " " : "",
				      s->kind == KX_SLED_TAIL ? "tail" : "ret",
				      s->cost == KX_COST_STEPPED ? "!" : "",
				      (int)(s->addr - start));
		if (s->conditional)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "?%x", s->condition);
		if (s->kind == KX_SLED_TAIL)
			assert_true(p.tail_calls);
	}
	assert_string_equal(text, exits);
	kx_plan_free(&p);
}

static void test_entries(void **state)
{
	struct kx_plan p;

	(void)state;
	entry_is("endbr_push", 4, KX_COST_EMULATED, 6);
	entry_is("push_r12", 0, KX_COST_EMULATED, 6);
	entry_is("mov_xor_push", 5, KX_COST_EMULATED, 1);
	entry_is("cond_tail", 2, KX_COST_EMULATED, 6);
	entry_is("sub_first", 4, KX_COST_EMULATED, 6);
	entry_is("just_ret", 0, KX_COST_STEPPED, 6);
	entry_is("just_jmp", 0, KX_COST_EMULATED, 6);
	entry_is("cpuid_first", 0, KX_COST_STEPPED, 6);
	entry_is("padded", 0, KX_COST_EMULATED, 6);
	/* a branch lands between the entry and the cheap instruction */
	entry_is("loop_behind", 0, KX_COST_STEPPED, 6);
	entry_is("entered_sideways", 0, KX_COST_STEPPED, 6);
	entry_is("entered_by_jump", 0, KX_COST_STEPPED, 6);
	entry_is("entered_by_jcc", 0, KX_COST_STEPPED, 6);
	entry_is("entered_by_call", 0, KX_COST_STEPPED, 6);
	entry_is("entered_by_loop", 0, KX_COST_STEPPED, 6);
	/* in a function with a switch, only a prologue's push is certainly not in a loop */
	entry_is("table", 0, KX_COST_STEPPED, 6);
	entry_is("table_push", 2, KX_COST_EMULATED, 6);

	p = plan(&lib, "loop_behind", &automatic);
	assert_true(p.has_loop);
	assert_false(p.makes_calls);
	assert_int_equal(p.instructions, 4);
	kx_plan_free(&p);
	p = plan(&lib, "padded", &automatic);
	assert_false(p.has_loop);
	assert_int_equal(p.instructions, 3);
	kx_plan_free(&p);
}

/* @frame: by which the stack pointer has moved at the probe. */
static void frame_is(const char *name, const struct kx_plan_options *options, uint64_t offset,
		     enum kx_cost cost, unsigned args, unsigned frame)
{
	struct kx_plan p = plan(&lib, name, options);

	if (p.entry.addr - symbol_named(&lib.syms, name)->addr != offset || p.entry.cost != cost ||
	    p.args != args || p.frame != frame)
		fail_msg("%s: entry +%d %s args %u frame %u", name,
			 (int)(p.entry.addr - symbol_named(&lib.syms, name)->addr), kx_cost_name(p.entry.cost),
			 p.args, p.frame);
	kx_plan_free(&p);
}

static void test_frames(void **state)
{
	const struct kx_plan_options none = { .exits = KX_EXITS_NONE };
	static const char *const refused[] = { "sub_large", "sub_odd", "sub_negative", "sub_register",
					       "sub_loop", "sub_then_lock", "push_call_large",
					       "push_flags", "push_word", "push_loop", "push_table" };

	(void)state;
	frame_is("sub_first", &none, 4, KX_COST_EMULATED, 6, 8);
	frame_is("sub_first", &instruction, 4, KX_COST_EMULATED, 6, 8);
	frame_is("sub_first", &risky, 4, KX_COST_EMULATED, 6, 8);
	frame_is("sub_two", &none, 10, KX_COST_EMULATED, 1, 24);
	frame_is("sub_jcc", &none, 11, KX_COST_EMULATED, 6, 128);
	frame_is("sub_most", &none, 7, KX_COST_EMULATED, 6, 248);
	frame_is("sub_push_call", &none, 15, KX_COST_EMULATED, 1, 24);
	frame_is("push_call", &none, 2, KX_COST_EMULATED, 6, 8);
	frame_is("push_call_most", &none, 9, KX_COST_EMULATED, 6, 248);
	frame_is("push_call", &returns, 0, KX_COST_STEPPED, 6, 0);
	/* a return probe takes what the stack pointer points at for the return address */
	frame_is("sub_first", &returns, 0, KX_COST_STEPPED, 6, 0);
	frame_is("sub_first", &automatic, 4, KX_COST_EMULATED, 6, 8);
	frame_is("sub_jcc", &returns, 4, KX_COST_STEPPED, 6, 0);
	/* nor is anything gained where the first instruction is cheap */
	frame_is("push_r12", &none, 0, KX_COST_EMULATED, 6, 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		frame_is(refused[i], &none, 0, KX_COST_STEPPED, 6, 0);
	/* a table's jump may land at the compare, behind the frame's instruction */
	frame_is("sub_table", &none, 0, KX_COST_STEPPED, 6, 0);
	frame_is("far_push", &none, 64, KX_COST_EMULATED, 6, 0);
	frame_is("too_far_push", &none, 0, KX_COST_STEPPED, 6, 0);
}

/* After a rest a planner finds the same. */
static void test_rest(void **state)
{
	(void)state;
	kx_planner_rest(lib.planner);
	entry_is("mov_xor_push", 5, KX_COST_EMULATED, 1);
	kx_planner_rest(lib.planner);
	kx_planner_rest(lib.planner);
	/* a branch of another function lands in it */
	entry_is("entered_sideways", 0, KX_COST_STEPPED, 6);
}

/* What the kernel emulates is what the caller found. */
static void test_emulated(void **state)
{
	const struct kx_plan_options all = { .emulated = (1u << KX_INSN_KINDS) - 1 };
	const struct kx_plan_options no_push = { .emulated = KX_EMULATED_ALWAYS & ~(1u << KX_INSN_PUSH) };

	(void)state;
	frame_is("long_nop", &returns, 0, KX_COST_STEPPED, 6, 0);
	frame_is("frame_pointer", &returns, 0, KX_COST_STEPPED, 6, 0);
	frame_is("long_nop", &all, 0, KX_COST_EMULATED, 6, 0);
	frame_is("frame_pointer", &all, 0, KX_COST_EMULATED, 6, 0);
	frame_is("sub_first", &all, 0, KX_COST_EMULATED, 6, 0);
	frame_is("sub_large", &all, 0, KX_COST_EMULATED, 6, 0);
	frame_is("nop5_crosses", &all, 0, KX_COST_EMULATED, 6, 0);
	frame_is("push_r12", &no_push, 0, KX_COST_STEPPED, 6, 0);
}

static void test_nop5(void **state)
{
	const struct kx_plan_options old = { .returns_harmless = true };
	struct kx_plan p;

	(void)state;
	entry_is("nop5", 0, KX_COST_NOP5, 6);
	entry_is("endbr_nop5", 4, KX_COST_NOP5, 6);
	entry_is("nop5_crosses", 0, KX_COST_STEPPED, 6);
	entry_is("nop5_red_zone", 0, KX_COST_STEPPED, 6);
	p = plan(&lib, "nop5", &old);
	assert_int_equal(p.entry.cost, KX_COST_STEPPED);
	kx_plan_free(&p);
}

static void test_left_out(void **state)
{
	(void)state;
	refuses("undecodable", &automatic, -ENOEXEC, "cannot be decoded at +0x1");
	refuses("lock_first", &automatic, -EOPNOTSUPP,
		"the kernel takes no probe on its first instructions at +0x0");
	refuses("restarts", &automatic, -EOPNOTSUPP,
		"a loop starts at its first instruction, so that each turn would look like a call");
	refuses("unclear", &instruction, -EOPNOTSUPP,
		"the jump at +0x4 may be a tail call or a switch");
	refuses("loop_out", &instruction, -EOPNOTSUPP, "it leaves by a loop instruction at +0x2");
	/* with harmless return probes, these functions need no instruction exits */
	assert_int_equal(plan(&lib, "unclear", &automatic).exit_kind, KX_EXITS_RETURN);
	assert_int_equal(plan(&lib, "loop_out", &automatic).exit_kind, KX_EXITS_RETURN);
	refuses("unclear", &risky, -EOPNOTSUPP, "the jump at +0x4 may be a tail call or a switch");
}

static void test_exits(void **state)
{
	struct kx_plan p;

	(void)state;
	exits_are("endbr_push", "ret!6");
	exits_are("ret_imm", "ret!2");
	exits_are("rep_ret", "ret!2");
	exits_are("sub_first", "ret!13");
	exits_are("just_ret", "ret!0");
	exits_are("just_jmp", "tail0");
	exits_are("table", "ret!23 ret!26");
	exits_are("table_push", "ret!20");
	exits_are("vtable_tail", "tail!3");
	exits_are("pointer_tail", "tail!7");
	exits_are("passed_tail", "tail!6");
	exits_are("fixed_tail", "tail!2");
	exits_are("epilogue_tail", "tail!14");
	exits_are("inside_frame", "ret!8");
	exits_are("sigreturn", "");

	/* je rel32 or rel8, chosen by the assembler */
	p = plan(&lib, "cond_tail", &instruction);
	assert_int_equal(p.nexits, 2);
	assert_int_equal(p.exits[0].kind, KX_SLED_TAIL);
	assert_true(p.exits[0].conditional);
	assert_int_equal(p.exits[0].condition, 4);
	assert_int_equal(p.exits[0].cost, KX_COST_EMULATED);
	assert_int_equal(p.exits[1].kind, KX_SLED_EXIT);
	assert_int_equal(p.exits[1].addr, symbol_named(&lib.syms, "cond_tail")->addr +
						  symbol_named(&lib.syms, "cond_tail")->size - 1);
	/* entry and exit on one instruction */
	assert_int_equal(p.entry.addr, p.exits[0].addr);
	kx_plan_free(&p);
}

static void test_cold_part(void **state)
{
	const struct kx_symbol *sym = symbol_named(&lib.syms, "with_cold");
	struct kx_plan p = plan(&lib, "with_cold", &instruction);

	(void)state;
	assert_true(sym->cold_addr != 0);
	assert_int_equal(sym->cold_size, 11);
	assert_int_equal(p.instructions, 8);
	assert_int_equal(p.nexits, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct kx_sled *s = &p.exits[i];

		/* the return instruction follows the jump to the cold part */
		assert_int_equal(s->addr, s->kind == KX_SLED_EXIT ? sym->addr + 3 : sym->cold_addr + 6);
		assert_int_equal(s->conditional, s->kind == KX_SLED_EXIT);
	}
	assert_true(p.makes_calls);
	assert_int_equal(p.entry.addr, sym->addr);
	kx_plan_free(&p);
}

static uint8_t exit_kind(const char *name, const struct kx_plan_options *options)
{
	struct kx_plan p = plan(&lib, name, options);
	const uint8_t kind = p.exit_kind;

	if (kind != KX_EXITS_INSTRUCTION)
		assert_int_equal(p.nexits, 0);
	kx_plan_free(&p);
	return kind;
}

static void test_choice(void **state)
{
	const struct kx_plan_options go = { .returns_harmless = true, .returns_forbidden = true };
	const struct kx_plan_options none = { .exits = KX_EXITS_NONE };
	static const char *const own[] = { "reads_return", "reads_return_deep",
					   "reads_return_frame", "pops_return" };

	(void)state;
	assert_int_equal(exit_kind("mov_xor_push", &automatic), KX_EXITS_RETURN);
	assert_int_equal(exit_kind("sub_first", &automatic), KX_EXITS_INSTRUCTION);
	assert_int_equal(exit_kind("sub_first", &risky), KX_EXITS_INSTRUCTION);
	assert_int_equal(exit_kind("mov_xor_push", &risky), KX_EXITS_RETURN); /* a leaf */
	assert_int_equal(exit_kind("table", &risky), KX_EXITS_RETURN);
	assert_int_equal(exit_kind("just_jmp", &risky), KX_EXITS_INSTRUCTION);
	assert_int_equal(exit_kind("vtable_tail", &risky), KX_EXITS_INSTRUCTION);
	assert_int_equal(exit_kind("mov_xor_push", &go), KX_EXITS_INSTRUCTION);
	assert_int_equal(exit_kind("sub_first", &none), KX_EXITS_NONE);
	assert_int_equal(exit_kind("sub_first", &returns), KX_EXITS_RETURN);

	/* setjmp, vfork, dlsym and the like */
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		assert_int_equal(exit_kind(own[i], &automatic), KX_EXITS_INSTRUCTION);
		refuses(own[i], &returns, -EOPNOTSUPP,
			"it uses its own return address, which a return probe would replace");
	}
	assert_int_equal(exit_kind("reads_stack_args", &returns), KX_EXITS_RETURN);
	assert_int_equal(exit_kind("sigreturn", &automatic), KX_EXITS_INSTRUCTION);
	refuses("sigreturn", &returns, -EOPNOTSUPP,
		"it is not entered by a call, so there is no return address to take");
}

/* The kernel starts a program at _start, where the stack holds argc. */
static void test_entry_point(void **state)
{
	struct kx_err err = { 0 };
	struct kx_plan p;
	struct binary b;

	(void)state;
	write_file("start.s", ".globl _start\n.type _start,@function\n_start: push %rbx\n hlt\n"
			      ".size _start,.-_start\n");
	sh("as start.s -o start.o && ld start.o -o start");
	open_binary(&b, in_dir("start"));
	assert_int_equal(kx_plan_function(b.planner, symbol_named(&b.syms, "_start"), &returns, &p, &err),
			 -EOPNOTSUPP);
	p = plan(&b, "_start", &automatic);
	assert_int_equal(p.exit_kind, KX_EXITS_INSTRUCTION);
	assert_int_equal(p.nexits, 0);
	kx_plan_free(&p);
	close_binary(&b);
}

/* Go restarts a function after it has grown the stack: the probe is placed after that check. */
static void test_go(void **state)
{
	struct kx_plan p;
	struct binary b;

	(void)state;
	write_file("go.s",
		   ".globl small, big\n.type small,@function\n.type big,@function\n.text\n"
		   "small: cmp 0x10(%r14),%rsp\n jbe 1f\n push %rbp\n pop %rbp\n ret\n" /* 4 2 1 1 1 */
		   "1: call big\n jmp small\n.size small,.-small\n"
		   "big: lea -0x100(%rsp),%r12\n cmp 0x10(%r14),%r12\n jbe 1f\n" /* 8 4 2 */
		   " sub $0x180,%rsp\n add $0x180,%rsp\n ret\n"                  /* 7 7 1 */
		   "1: call small\n jmp big\n.size big,.-big\n"
		   ".section .go.buildinfo,\"aw\"\n .quad 0\n");
	sh("as go.s -o go.o && ld -shared -Bsymbolic go.o -o go.so");
	open_binary(&b, in_dir("go.so"));
	p = plan(&b, "small", &instruction);
	assert_int_equal(p.entry.addr - symbol_named(&b.syms, "small")->addr, 6);
	assert_int_equal(p.entry.cost, KX_COST_EMULATED);
	assert_int_equal(p.nexits, 1);
	assert_int_equal(p.exits[0].addr - symbol_named(&b.syms, "small")->addr, 8);
	assert_int_equal(p.exits[0].kind, KX_SLED_EXIT);
	kx_plan_free(&p);
	p = plan(&b, "big", &instruction);
	assert_int_equal(p.entry.addr - symbol_named(&b.syms, "big")->addr, 14);
	assert_int_equal(p.entry.cost, KX_COST_STEPPED);
	assert_int_equal(p.nexits, 1);
	kx_plan_free(&p);
	close_binary(&b);
}

static const char xray_source[] =
	"__attribute__((noinline)) int leaf(int x) { return x * 3; }\n"
	"__attribute__((noinline)) int other(int x) { __asm__ volatile(\"\"); return x + 1; }\n"
	"__attribute__((noinline)) int tail(int x) { return other(x ^ 5); }\n"
	"int main(int argc, char **argv) { (void)argv; return leaf(argc) + tail(argc) - 9; }\n";

/* Compares every sled with llvm-xray's reading of the binary. */
static void check_xray(const char *file)
{
	static const char *const names[] = { "leaf", "other", "tail", "main" };
	const uint64_t *functions;
	struct binary b;
	size_t n;

	open_binary(&b, in_dir(file));
	n = kx_planner_xray_functions(b.planner, &functions);
	assert_int_equal(n, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct kx_symbol *sym = symbol_named(&b.syms, names[i]);
		struct kx_plan p = plan(&b, names[i], &instruction);
		const char *yaml = "/usr/lib/llvm-14/bin/llvm-xray extract";
		size_t id = 0;

		while (id < n && functions[id] != sym->addr)
			id++;
		assert_true(id < n);
		assert_true(p.xray);
		assert_int_equal(p.entry.addr, sym->addr);
		assert_int_equal(p.entry.cost, KX_COST_EMULATED);
		assert_int_equal(p.args, 6);
		assert_int_equal(p.nexits, 1);
		assert_int_equal(p.exits[0].kind, i == 2 ? KX_SLED_TAIL : KX_SLED_EXIT);
		assert_int_equal(p.exits[0].cost, i == 2 ? KX_COST_EMULATED : KX_COST_STEPPED);
		/* - { id: 1, address: 0x..., function: 0x..., kind: function-enter, ... } */
		assert_string_equal(
			line_of("%s %s | grep -ci 'id: %zu, address: 0x0*%lX, function: 0x0*%lX, "
				"kind: function-enter'",
				yaml, file, id + 1, p.entry.addr, sym->addr),
			"1");
		assert_string_equal(
			line_of("%s %s | grep -ci 'id: %zu, address: 0x0*%lX, function: 0x0*%lX, "
				"kind: %s'",
				yaml, file, id + 1, p.exits[0].addr, sym->addr,
				i == 2 ? "tail-exit" : "function-exit"),
			"1");
		kx_plan_free(&p);
	}
	close_binary(&b);
}

static void test_xray(void **state)
{
	(void)state;
	write_file("x.c", xray_source);
	sh("clang-14 -O2 -fxray-instrument -fxray-instruction-threshold=1 -c x.c -o x.o -fPIE");
	sh("clang-14 -fxray-instrument -pie x.o -o x-pie");
	check_xray("x-pie");
	sh("clang-14 -O2 -fxray-instrument -fxray-instruction-threshold=1 -fno-pie -no-pie x.c -o x-exec");
	check_xray("x-exec");
}

/* Maps of old compilers hold absolute addresses, in a PIE filled in by relocations. */
static void test_xray_old(void **state)
{
	const uint64_t *functions;
	struct kx_plan p;
	struct binary b;

	(void)state;
	write_file("old.s",
		   ".macro sled at f kind\n .quad \\at,\\f\n .byte \\kind,1,0\n .zero 13\n.endm\n"
		   ".text\n.globl one,two\n.hidden one,two\n"
		   ".type one,@function\n.type two,@function\n"
		   "one: nop\n jmp .+11\n .skip 9,0x90\n mov %edi,%eax\n.Le1: ret\n.size one,.-one\n"
		   "two: jmp .+11\n .skip 9,0x90\n.Le2: jmp .+11\n .skip 9,0x90\n jmp one\n"
		   ".size two,.-two\n"
		   ".section xray_instr_map,\"aw\"\n"
		   " sled two two 3\n sled .Le2 two 2\n sled one+1 one 0\n sled .Le1 one 1\n");
	sh("as old.s -o old.o && ld -shared -Bsymbolic old.o -o old.so");
	/* the file itself has zeros there */
	assert_string_equal(line_of("objcopy -O binary -j xray_instr_map --set-section-flags "
				    "xray_instr_map=alloc,contents old.so o.bin; "
				    "od -An -tx8 -N8 o.bin"),
			    " 0000000000000000");
	open_binary(&b, in_dir("old.so"));
	assert_int_equal(kx_planner_xray_functions(b.planner, &functions), 2);
	assert_int_equal(functions[0], symbol_named(&b.syms, "two")->addr);
	assert_int_equal(functions[1], symbol_named(&b.syms, "one")->addr);
	p = plan(&b, "one", &instruction);
	assert_true(p.xray);
	assert_int_equal(p.entry.addr - functions[1], 1);
	assert_int_equal(p.nexits, 1);
	assert_int_equal(p.exits[0].kind, KX_SLED_EXIT);
	assert_int_equal(p.exits[0].addr - functions[1], 14);
	kx_plan_free(&p);
	p = plan(&b, "two", &instruction);
	assert_int_equal(p.entry.addr, functions[0]);
	assert_int_equal(p.nexits, 1);
	assert_int_equal(p.exits[0].kind, KX_SLED_TAIL);
	assert_int_equal(p.exits[0].addr - functions[0], 11);
	assert_true(p.tail_calls);
	kx_plan_free(&p);
	close_binary(&b);
}

/* Sleds that point between instructions or out of the function are not probed. */
static void test_xray_damaged(void **state)
{
	struct kx_err err = { 0 };
	struct kx_plan p;
	struct binary b;

	(void)state;
	write_file("bad.s",
		   ".macro sled at f kind\n .quad \\at,\\f\n .byte \\kind,1,0\n .zero 13\n.endm\n"
		   ".text\n.globl one,two\n.hidden one,two\n"
		   ".type one,@function\n.type two,@function\n"
		   "one: push %rbx\n lea 0x55(%rdi),%rax\n pop %rbx\n ret\n.size one,.-one\n"
		   "two: push %rbx\n pop %rbx\n ret\n.size two,.-two\n"
		   ".section xray_instr_map,\"aw\"\n"
		   " sled one+4 one 0\n sled one+6 one 1\n sled two two 0\n sled one+6 two 1\n");
	sh("as bad.s -o bad.o && ld -shared -Bsymbolic bad.o -o bad.so");
	open_binary(&b, in_dir("bad.so"));
	p = plan(&b, "one", &instruction);
	assert_false(p.xray);
	assert_int_equal(p.entry.addr, symbol_named(&b.syms, "one")->addr);
	kx_plan_free(&p);
	assert_int_equal(kx_plan_function(b.planner, symbol_named(&b.syms, "two"), &instruction, &p, &err),
			 -EOPNOTSUPP);
	close_binary(&b);

	write_file("cut.s", ".globl one\n.type one,@function\none: ret\n.size one,.-one\n"
			    ".section xray_instr_map,\"a\"\n .zero 33\n");
	sh("as cut.s -o cut.o && ld -shared cut.o -o cut.so");
	assert_int_equal(kx_elf_open(in_dir("cut.so"), &b.elf, &err), 0);
	assert_int_equal(kx_symbols_read(b.elf, NULL, &b.syms, &err), 0);
	assert_int_equal(kx_planner_new(b.elf, &b.syms, 1, NULL, &b.planner, &err), -EBADMSG);
	kx_symbols_free(&b.syms);
	kx_elf_close(b.elf);
}

static void test_no_xray(void **state)
{
	const uint64_t *functions;

	(void)state;
	assert_int_equal(kx_planner_xray_functions(lib.planner, &functions), 0);
	assert_false(plan(&lib, "just_ret", &automatic).xray);
}

/* Share of all functions whose entry isn't single-stepped, in percent. */
static void share_is(const char *path, unsigned least)
{
	size_t cheap = 0;
	struct binary b;

	if (access(path, R_OK)) {
		print_message("%s is not here\n", path);
		return;
	}
	open_binary(&b, path);
	assert_true(b.syms.count > 1000);
	for (size_t i = 0; i < b.syms.count; i++) {
		struct kx_plan p;

		if (kx_plan_function(b.planner, &b.syms.items[i], &automatic, &p, NULL))
			continue;
		cheap += p.entry.cost != KX_COST_STEPPED;
		kx_plan_free(&p);
	}
	print_message("%s: %zu of %zu functions have a cheap entry, %.1f %%\n", path, cheap,
		      b.syms.count, 100.0 * (double)cheap / (double)b.syms.count);
	if (cheap * 100 < b.syms.count * least)
		fail_msg("under %u %%", least);
	close_binary(&b);
}

static void test_shares(void **state)
{
	(void)state;
	share_is("/lib/x86_64-linux-gnu/libc.so.6", 65);
	share_is("/usr/bin/python3.11", 80);
	share_is("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 65);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(kx_cost_name(KX_COST_NOP5), "nop5");
	assert_string_equal(kx_cost_name(KX_COST_EMULATED), "emulated");
	assert_string_equal(kx_cost_name(KX_COST_STEPPED), "stepped");
	assert_string_equal(kx_exits_name(KX_EXITS_AUTO), "auto");
	assert_string_equal(kx_exits_name(KX_EXITS_RETURN), "return");
	assert_string_equal(kx_exits_name(KX_EXITS_INSTRUCTION), "instruction");
	assert_string_equal(kx_exits_name(KX_EXITS_NONE), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries),   cmocka_unit_test(test_nop5),
		cmocka_unit_test(test_frames),    cmocka_unit_test(test_emulated),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_left_out),  cmocka_unit_test(test_exits),
		cmocka_unit_test(test_cold_part), cmocka_unit_test(test_choice),
		cmocka_unit_test(test_entry_point), cmocka_unit_test(test_go),
		cmocka_unit_test(test_xray),      cmocka_unit_test(test_xray_old),
		cmocka_unit_test(test_xray_damaged),
		cmocka_unit_test(test_no_xray),   cmocka_unit_test(test_shares),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, build, cleanup);
}
