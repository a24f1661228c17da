// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions on stacks that are nearly full. "signals": 2,000 signals on the smallest alternate
 * stack that the kernel allows, and 1,024 bytes; "end": hz_leaf with 1,024 bytes left above an
 * unmapped page; "least": with ever less, and prints to standard error with how few bytes it still
 * works. "inside": on a small stack for signals that is a variable on the thread's own stack, beside others; "part": the same
 * with a coroutine's.
 */
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf) X(hz_inside)
#include "outer_leaf.h"

#define SIGNALS 2000
#define SIZE	(64 << 10)

static char *stack;
static volatile long handled, left, result;
static sigjmp_buf back;

static void on_signal(int signal)
{
	handled += hz_outer(signal) == 2 * (signal + 1);
}

static void on_fault(int signal)
{
	siglongjmp(back, signal);
}

static long signals(void)
{
	const size_t size = sysconf(_SC_MINSIGSTKSZ) + 1024;
	stack_t alternate = { .ss_sp = stack + SIZE - size, .ss_size = size };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	if (sigaltstack(&alternate, NULL) || sigaction(SIGUSR1, &action, NULL))
		return 0;
	for (int i = 0; i < SIGNALS; i++)
		raise(SIGUSR1);
	return handled;
}

/* Calls hz_leaf with the stack pointer `left` bytes above the unmapped page, and comes back. */
static long call_at_end(long bytes)
{
	char *sp = stack + bytes;
	long answer;

	__asm__ volatile("movq %%rsp, %%rbx\n\tmovq %[sp], %%rsp\n\tmovl $5, %%edi\n\tcall "
			 "hz_leaf\n\tmovq %%rbx, %%rsp"
			 : "=a"(answer)
			 : [sp] "r"(sp)
			 : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory",
			   "cc");
	return answer;
}

static long at_end(long bytes)
{
	for (long i = 0; i < SIGNALS; i++)
		result += call_at_end(bytes) == 6;
	return result;
}

static long least(void)
{
	static char own[64 << 10];
	stack_t alternate = { .ss_sp = own, .ss_size = sizeof(own) };
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK | SA_NODEFER };

	if (sigaltstack(&alternate, NULL) || sigaction(SIGSEGV, &action, NULL))
		return 0;
	for (left = 2048; left >= 16; left -= 16)
		if (sigsetjmp(back, 1) || call_at_end(left) != 6)
			break;
	fprintf(stderr, "hz_leaf needs %ld bytes of stack\n", left + 16);
	return SIGNALS;
}

#define PATTERN 0x5a
#define BESIDE	(16 << 10)
#define PAUSES	800

/* On a stack that ends above memory which is in use. */
HZ void hz_inside(char *beside)
{
	HIT(hz_inside);
	for (int i = 0; i < PAUSES; i++) {
		result += hz_outer(i) == 2 * (i + 1);
		target_pause(i % 3);
		for (int k = 0; k < BESIDE; k++)
			left += beside[k] != PATTERN;
	}
}

static unsigned long beside_stack;

static void on_inside(int signal)
{
	(void)signal;
	hz_inside((char *)beside_stack);
}

static long inside(int part)
{
	const size_t size = (sysconf(_SC_MINSIGSTKSZ) + 1024) & ~63ul;
	char memory[SIZE] __attribute__((aligned(64)));
	stack_t alternate = { .ss_sp = memory + BESIDE, .ss_size = size };
	struct sigaction action = { .sa_handler = on_inside, .sa_flags = SA_ONSTACK };

	memset(memory, PATTERN, sizeof(memory));
	beside_stack = (unsigned long)memory;
	target_pause(1); /* binds what it calls, which takes more stack */
	if (part)
		__asm__ volatile("movq %%rsp, %%rbx\n\tmovq %[sp], %%rsp\n\tmovq %[beside], %%rdi\n\tcall hz_inside\n\tmovq %%rbx, %%rsp"
				 :
				 : [sp] "r"(memory + BESIDE + 2048), [beside] "r"(memory)
				 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
	else if (sigaltstack(&alternate, NULL) || sigaction(SIGUSR1, &action, NULL) || raise(SIGUSR1))
		return 0;
	return result == PAUSES && !left ? SIGNALS : -left;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	char *memory =
		(char *)mmap(NULL, 4096 + SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *how = o.rest ? o.rest : "end";

	stack = memory + 4096;
	if (memory == MAP_FAILED || mprotect(stack, SIZE, PROT_READ | PROT_WRITE))
		return 2;
	return hazard_end(&o,
			  !strcmp(how, "signals") ? signals()
			  : !strcmp(how, "least") ? least()
			  : !strcmp(how, "inside") || !strcmp(how, "part") ? inside(!strcmp(how, "part"))
						  : at_end(1024),
			  SIGNALS);
}
