// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions with conventions of their own, as assembly has them: hz_keep changes rax only, and its
 * caller expects all other registers, vector registers and the x87 stack as they were; hz_red keeps
 * values in the 128 bytes below the stack pointer. With the argument "carry" it calls hz_carry,
 * which returns the carry flag and keeps rax: the ABI knows no such result, but assembly does it.
 */
#define HAZARD_FUNCTIONS X(hz_outer)
#include "hazard.h"

#define ROUNDS 3000

long hz_keep(long n);
long hz_red(long n);
long keeps_all(long n);
long carries(long n);
static int asks_carry;

#define FUNCTION(name) ".globl " #name "\n.type " #name ", @function\n.p2align 4\n" #name ":\n"
#define END(name) "ret\n.size " #name ", . - " #name "\n"
#define SAVED "rbx, rbp, r12, r13, r14, r15"
#define KEPT "rcx, rdx, rsi, r8, r9, r10, r11, " SAVED

/* In order: the numbers from 101 on in all registers that hz_keep must not touch, what differs after it, that far above its result. */
// clang-format off
__asm__(".text\n"
	FUNCTION(hz_keep)
	"leaq 1(%rdi), %rax\n leaq 1(%rax), %rax\n leaq (%rax), %rax\n"
	END(hz_keep)
	FUNCTION(hz_carry)
	"movq %rdi, %rdx\n movq %rdx, %rcx\n shrq $1, %rcx\n movq %rdx, %rdx\n movq %rdx, %rdx\n"
	END(hz_carry)
	FUNCTION(hz_red)
	".irp at, 8, 64, 128\n movq %rdi, -\\at(%rsp)\n .endr\n xorl %eax, %eax\n"
	".irp at, 8, 64, 128\n addq -\\at(%rsp), %rax\n .endr\n"
	END(hz_red)
	FUNCTION(keeps_all)
	".irp r, " SAVED "\n pushq %\\r\n .endr\n subq $8, %rsp\n"
	".set v, 100\n .irp r, " KEPT "\n .set v, v + 1\n movq $v, %\\r\n .endr\n"
	"fld1\n movq %rbx, %xmm0\n movq %rcx, %xmm7\n movq %rdx, %xmm15\n"
	"call hz_keep\n"
	"fistpl (%rsp)\n movl (%rsp), %edi\n decl %edi\n"
	".set v, 100\n .irp r, " KEPT "\n .set v, v + 1\n subq $v, %\\r\n orq %\\r, %rdi\n .endr\n"
	"movq %xmm0, %rcx\n subq $108, %rcx\n orq %rcx, %rdi\n" // rbx is the eighth
	"movq %xmm7, %rcx\n subq $101, %rcx\n orq %rcx, %rdi\n"
	"movq %xmm15, %rcx\n subq $102, %rcx\n orq %rcx, %rdi\n"
	"shlq $32, %rdi\n addq %rdi, %rax\n"
	"addq $8, %rsp\n .irp r, r15, r14, r13, r12, rbp, rbx\n popq %\\r\n .endr\n"
	END(keeps_all)
	FUNCTION(carries)
	"movl $1000, %eax\n call hz_carry\n adcq $0, %rax\n"
	END(carries));
// clang-format on

HZ long hz_outer(long n)
{
	HIT(hz_outer);
	return keeps_all(n) + (asks_carry ? carries(n) : 1000 + n % 2) + hz_red(n);
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	long answer = 0, expected = 0;

	asks_carry = o.rest != NULL;
	for (long n = 0; n < ROUNDS; n++) {
		answer += hz_outer(n);
		expected += n + 2 + 1000 + n % 2 + 3 * n;
	}
	return hazard_end(&o, answer, expected);
}
