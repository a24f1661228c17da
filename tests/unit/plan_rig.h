// SPDX-License-Identifier: BSD-2-Clause
/* Small programs that are compiled, and the plans of their functions. Include it after cmocka's headers. */
#ifndef KX_TEST_PLAN_RIG_H
#define KX_TEST_PLAN_RIG_H

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

static inline void open_binary(struct binary *b, const char *path)
{
	struct kx_err err = { 0 };

	memset(b, 0, sizeof(*b));
	if (kx_elf_open(path, &b->elf, &err) || kx_symbols_read(b->elf, NULL, &b->syms, &err) ||
	    kx_planner_new(b->elf, &b->syms, 1, NULL, &b->planner, &err))
		fail_msg("%s", err.text);
}

static inline void close_binary(struct binary *b)
{
	kx_planner_free(b->planner);
	kx_symbols_free(&b->syms);
	kx_elf_close(b->elf);
}

static inline int build(void **state)
{
	if (target_setup(state))
		return -1;
	assemble(source);
	open_binary(&lib, in_dir("f.so"));
	return 0;
}

static inline int cleanup(void **state)
{
	close_binary(&lib);
	return target_teardown(state);
}

static const struct kx_plan_options automatic = { .returns_harmless = true,
						  .nop5_optimized = true };
static const struct kx_plan_options risky = { .nop5_optimized = true };
static const struct kx_plan_options instruction = { .exits = KX_EXITS_INSTRUCTION };
static const struct kx_plan_options returns = { .exits = KX_EXITS_RETURN };

static inline struct kx_plan plan(const struct binary *b, const char *name,
				  const struct kx_plan_options *options)
{
	struct kx_err err = { 0 };
	struct kx_plan p;

	if (kx_plan_function(b->planner, symbol_named(&b->syms, name), options, &p, &err))
		fail_msg("%s: %s", name, err.text);
	return p;
}

static inline void refuses(const char *name, const struct kx_plan_options *options, int code,
			   const char *text)
{
	struct kx_err err = { 0 };
	struct kx_plan p;

	assert_int_equal(kx_plan_function(lib.planner, symbol_named(&lib.syms, name), options, &p, &err), code);
	assert_int_equal(err.code, code);
	assert_string_equal(err.text, text);
}

static inline uint8_t exit_kind(const char *name, const struct kx_plan_options *options)
{
	struct kx_plan p = plan(&lib, name, options);
	const uint8_t kind = p.exit_kind;

	if (kind != KX_EXITS_INSTRUCTION)
		assert_int_equal(p.nexits, 0);
	kx_plan_free(&p);
	return kind;
}

#endif
