// SPDX-License-Identifier: BSD-2-Clause
/* Functions with known instructions, where jumps go in them, and how they are called with given registers: for test_trampoline.c. */
#ifndef KX_TRAMPOLINE_VICTIMS_H
#define KX_TRAMPOLINE_VICTIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/windows.h"

/* Where instructions push what they read, the flags of the window's start have to be kept. */
__asm__(".pushsection .text\n"
	".macro fn name\n .p2align 5\n .globl \\name\n .type \\name,@function\n\\name:\n.endm\n"
	".macro end name\n nop\n nop\n nop\n nop\n .size \\name,.-\\name\n.endm\n"
	/* data in the red zone, over the whole of it */
	"fn red_zone\n mov %rdi,-8(%rsp)\n mov %rsi,-128(%rsp)\n"
	"red_zone_w: lea (%rdi,%rsi),%rax\n xor %ecx,%ecx\n" /* 4 2 */
	" mov -8(%rsp),%rdx\n mov -128(%rsp),%r8\n"
	"red_zone_x: mov %rdx,%r9\nred_zone_e: ret\nend red_zone\n" /* 3 1 */
	/* flags that are read behind the window */
	"fn flags_live\n mov %rdi,%rax\n"
	"flags_live_w: mov %rsi,%rdx\n lea 1(%rdi),%rcx\n" /* 3 4 */
	" pushf\n pop %r8\n"
	"flags_live_x: mov %rdx,%r9\nflags_live_e: ret\nend flags_live\n" /* 3 1 */
	/* flags and the red zone */
	"fn flags_red_zone\n mov %rdi,-8(%rsp)\n mov %rsi,-128(%rsp)\n"
	"flags_red_zone_w: mov %rsi,%rdx\n mov %rdi,%r10\n" /* 3 3 */
	" mov -8(%rsp),%rdx\n mov -128(%rsp),%rcx\n pushf\n pop %r8\n"
	"flags_red_zone_x: mov %rdx,%r9\nflags_red_zone_e: ret\nend flags_red_zone\n" /* 3 1 */
	/* windows behind a push, and before the pop */
	"fn framed\n push %rbx\n"
	"framed_w: mov %rdi,%rbx\n mov %rsi,%rax\n" /* 3 3 */
	" xor %edx,%edx\n"
	"framed_x: add %rbx,%rax\n pop %rbx\nframed_e: ret\nend framed\n" /* 3 1 1 */
	/* an exit that is a tail jump on a condition, near and far */
	"fn tail_target\n lea 7(%rdi,%rsi,2),%r10\n pop %r11\n push %r11\n ret\nend tail_target\n"
	"fn cond_tail\n mov %rdi,%rax\n"
	"cond_tail_w: cmp %rsi,%rdi\ncond_tail_t: je tail_target\n" /* 3 2 */
	" mov %rdx,%rcx\n pushf\n pop %r8\n"
	"cond_tail_x: mov %rcx,%r9\ncond_tail_e: ret\nend cond_tail\n" /* 3 1 */
	" .skip 200,0x90\n"
	"fn cond_far\n mov %rdi,%rax\n"
	"cond_far_w: cmp %rsi,%rdi\ncond_far_t: jg tail_target\n" /* 3 6 */
	" mov %rdx,%rcx\n pushf\n pop %r8\n"
	"cond_far_x: mov %rcx,%r9\ncond_far_e: ret\nend cond_far\n" /* 3 1 */
	/* an indirect tail jump by a register, and by memory */
	"fn register_tail\n lea tail_target(%rip),%r11\n"
	"register_tail_w: mov %rdi,%rax\nregister_tail_t: jmp *%r11\nend register_tail\n" /* 3 3 */
	"fn memory_tail\n mov %rdi,%rax\n"
	"memory_tail_w: jmp *trampoline_pointer(%rip)\nend memory_tail\n" /* 6 */
	"fn direct_tail\n mov %rdi,%rax\n"
	"direct_tail_w: jmp tail_target\nend direct_tail\n" /* 5 */
	/* memory by rip, with an immediate operand behind the displacement too */
	"fn by_rip\n mov %rdi,%rax\n"
	"by_rip_w: mov trampoline_data(%rip),%rcx\n cmpl $5,trampoline_data(%rip)\n" /* 7 7 */
	" pushf\n pop %r8\n"
	"by_rip_x: mov %rdx,%r9\nby_rip_e: ret\nend by_rip\n" /* 3 1 */
	/* a branch that leaves the window for the function */
	"fn branches\n mov %rdi,%rax\n"
	"branches_w: test $1,%dil\n jne 1f\n" /* 4 2 */
	" mov $5,%ecx\n"
	"1: pushf\n pop %r8\n"
	"branches_x: mov %rdx,%r9\nbranches_e: ret\nend branches\n" /* 3 1 */
	/* the callee takes arguments off the stack */
	"fn ret_imm\n mov %rdi,%rax\n"
	"ret_imm_w: mov %rsi,%rcx\n mov %rdi,%r9\nret_imm_t: ret $16\nend ret_imm\n" /* 3 3 3 */
	"fn calls_ret_imm\n push %rdi\n push %rsi\n call ret_imm\n ret\nend calls_ret_imm\n"
	/* what cannot be moved, or is no exit that can be recorded */
	"fn calls\n mov %rdi,%rax\ncalls_w: call tail_target\ncalls_e: ret\nend calls\n"
	"fn loops\n mov %rdi,%rax\nloops_w: mov $1,%ecx\nloops_e: loop loops_w\n ret\nend loops\n"
	"fn long_nops\n .skip 1200,0x90\n ret\nend long_nops\n"
	" .popsection\n"
	" .pushsection .data\n .balign 8\ntrampoline_data: .quad 5\n"
	"trampoline_pointer: .quad tail_target\n .popsection\n");

/* What a call begins and ends with. */
struct registers {
	uint64_t general[15]; /* rax rbx rcx rdx rsi rdi rbp r8 ... r15 */
	uint64_t flags;
	uint64_t sp; /* at the first instruction */
	uint64_t pad;
	uint8_t fx[512]; /* see fxsave: x87, SSE */
} __attribute__((aligned(16)));

void call_with(const void *function, struct registers *r);
__asm__(".pushsection .text\n .type call_with,@function\ncall_with:\n"
	" push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
	" push %rsi\n push %rdi\n"
	" lea -8(%rsp),%rax\n mov %rax,128(%rsi)\n fxrstor64 144(%rsi)\n"
	" mov (%rsi),%rax\n mov 8(%rsi),%rbx\n mov 16(%rsi),%rcx\n mov 24(%rsi),%rdx\n"
	" mov 40(%rsi),%rdi\n mov 48(%rsi),%rbp\n"
	" mov 56(%rsi),%r8\n mov 64(%rsi),%r9\n mov 72(%rsi),%r10\n mov 80(%rsi),%r11\n"
	" mov 88(%rsi),%r12\n mov 96(%rsi),%r13\n"
	" mov 104(%rsi),%r14\n mov 112(%rsi),%r15\n pushq 120(%rsi)\n popf\n mov 32(%rsi),%rsi\n"
	" call *(%rsp)\n"
	" push %rsi\n pushf\n mov 24(%rsp),%rsi\n"
	" mov %rax,(%rsi)\n mov %rbx,8(%rsi)\n mov %rcx,16(%rsi)\n mov %rdx,24(%rsi)\n"
	" mov %rdi,40(%rsi)\n mov %rbp,48(%rsi)\n"
	" mov %r8,56(%rsi)\n mov %r9,64(%rsi)\n mov %r10,72(%rsi)\n mov %r11,80(%rsi)\n"
	" mov %r12,88(%rsi)\n mov %r13,96(%rsi)\n"
	" mov %r14,104(%rsi)\n mov %r15,112(%rsi)\n popq 120(%rsi)\n popq 32(%rsi)\n"
	" fxsave64 144(%rsi)\n cld\n"
	" pop %rdi\n pop %rsi\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n"
	" pop %rbx\n ret\n"
	" .size call_with,.-call_with\n .popsection\n");

#define L(name) ((uintptr_t)(name))
/* not const: jumps are written there */
extern uint8_t red_zone[], red_zone_w[], red_zone_x[], red_zone_e[], flags_live[], flags_live_w[],
	flags_live_x[], flags_live_e[], flags_red_zone[], flags_red_zone_w[], flags_red_zone_x[],
	flags_red_zone_e[], framed[], framed_w[], framed_x[], framed_e[], cond_tail[],
	cond_tail_w[], cond_tail_t[], cond_tail_x[], cond_tail_e[], cond_far[], cond_far_w[],
	cond_far_t[], cond_far_x[], cond_far_e[], register_tail[], register_tail_w[],
	register_tail_t[], memory_tail[], memory_tail_w[], direct_tail[], direct_tail_w[], by_rip[],
	by_rip_w[], by_rip_x[], by_rip_e[], branches[], branches_w[], branches_x[], branches_e[],
	calls_ret_imm[], ret_imm_w[], ret_imm_t[], calls_w[], calls_e[], loops_w[], loops_e[],
	long_nops[];

struct victim {
	const char *name;
	const uint8_t *call;
	struct kx_window windows[2];
	int sp; /* of the recorded call, from that of `call` */
};

#define ENTRY_AT(label, bytes, insns) \
	.start = L(label), .length = (bytes), .starts = (insns), .entry = true
#define RET_OF(name)                                                                     \
	{                                                                                \
		.start = L(name##_x), .length = 5, .starts = 1 << 3, .exit = L(name##_e) \
	}

#define VICTIM(function, ...) .name = #function, .call = function, .windows = { __VA_ARGS__ }

static struct victim victims[] = {
	{ VICTIM(red_zone, { ENTRY_AT(red_zone_w, 6, 1 << 4) }, RET_OF(red_zone)) },
	{ VICTIM(flags_live, { ENTRY_AT(flags_live_w, 7, 1 << 3), .flags_live = true },
		 RET_OF(flags_live)) },
	{ VICTIM(flags_red_zone, { ENTRY_AT(flags_red_zone_w, 6, 1 << 3), .flags_live = true },
		 RET_OF(flags_red_zone)) },
	{ VICTIM(framed, { ENTRY_AT(framed_w, 6, 1 << 3), .entry_frame = 8 },
		 { .start = L(framed_x),
		   .length = 5,
		   .starts = 1 << 3 | 1 << 4,
		   .exit = L(framed_e) }) },
	{ VICTIM(cond_tail,
		 { ENTRY_AT(cond_tail_w, 5, 1 << 3), .exit = L(cond_tail_t), .tail = true },
		 RET_OF(cond_tail)) },
	{ VICTIM(cond_far, { ENTRY_AT(cond_far_w, 9, 1 << 3), .exit = L(cond_far_t), .tail = true },
		 RET_OF(cond_far)) },
	{ VICTIM(register_tail, { ENTRY_AT(register_tail_w, 6, 1 << 3), .exit = L(register_tail_t),
				  .tail = true }) },
	{ VICTIM(memory_tail,
		 { ENTRY_AT(memory_tail_w, 6, 0), .exit = L(memory_tail_w), .tail = true }) },
	{ VICTIM(direct_tail,
		 { ENTRY_AT(direct_tail_w, 5, 0), .exit = L(direct_tail_w), .tail = true }) },
	{ VICTIM(by_rip, { ENTRY_AT(by_rip_w, 14, 0) }, RET_OF(by_rip)) },
	{ VICTIM(branches, { ENTRY_AT(branches_w, 6, 1 << 4) }, RET_OF(branches)) },
	{ VICTIM(calls_ret_imm, { ENTRY_AT(ret_imm_w, 9, 1 << 3), .exit = L(ret_imm_t) }),
	  .sp = -24 },
};
#define VICTIMS (sizeof(victims) / sizeof(victims[0]))

#endif
