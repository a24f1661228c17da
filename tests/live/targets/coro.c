// SPDX-License-Identifier: BSD-2-Clause
/*
 * Generators on stacks of their own: next() resumes one and yield() suspends it, so that calls on two stacks end
 * in another order than they began. Built with ASM the switch is a function of its own that makes no calls,
 * with HIDDEN one that looks like a function leaving its frame; else it is swapcontext(). The main thread works
 * first, then a second thread; each has a generator with a stack above and one below its own stack, and a signal
 * handler on a stack above it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#ifndef ASM
#include <ucontext.h>
#endif

#include "target.h"

#define ROUNDS 250
#define STACK (256 << 10)

struct generator {
#ifdef ASM
	void *sp, *caller_sp; /* where each side continues */
#else
	ucontext_t context, caller;
#endif
	long value;
};

static _Thread_local struct generator *running;
static long calls_next, calls_yield, calls_leaf, calls_step, calls_signalled, calls_swap;
static volatile long handled;

#ifdef ASM

/* Saves the callee-saved registers and the stack pointer in *@save, continues where @to was saved. */
void swap(void **save, void *to);
__asm__(".text\n"
	".globl swap\n"
	".type swap, @function\n"
	"swap:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
#ifdef HIDDEN
	"	mov %rsi, %rbp\n"
	"	test %rbp, %rbp\n" /* directly behind each other they would be recognized */
	"	mov %rbp, %rsp\n"
#else
	"	mov %rsi, %rsp\n"
#endif
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size swap, . - swap\n");

static void resume(struct generator *g)
{
	calls_swap++;
	swap(&g->caller_sp, g->sp);
}

static void suspend(struct generator *g)
{
	calls_swap++;
	swap(&g->sp, g->caller_sp);
}

#else

static void resume(struct generator *g)
{
	calls_swap++;
	swapcontext(&g->caller, &g->context);
}

static void suspend(struct generator *g)
{
	calls_swap++;
	swapcontext(&g->context, &g->caller);
}

#endif

/* Called on all stacks, makes no calls. */
TRACED long leaf(long n)
{
	calls_leaf++;
	return n + 1;
}

/* On the generator's stack: hands a value to the caller of next(). */
TRACED long yield(long n)
{
	calls_yield++;
	running->value = leaf(n) - 1;
	suspend(running);
	return n + 1;
}

/* On the thread's stack: the generator's next value. */
TRACED long next(struct generator *g)
{
	calls_next++;
	running = g;
	resume(g);
	return g->value;
}

/* The same without a generator. */
TRACED long step(long n)
{
	calls_step++;
	return leaf(n) - 1;
}

/* A signal handler runs in the middle of it, on a stack of its own. */
TRACED long signalled(long n)
{
	calls_signalled++;
	handled = n;
	raise(SIGUSR1);
	return handled - 1;
}

static void handle(int signo)
{
	(void)signo;
	handled = step(handled) + 1;
}

static void generate(void)
{
	for (long n = 0;;)
		n = yield(n);
}

static void *map_stack(size_t n)
{
	void *p = mmap(NULL, n * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

static void start(struct generator *g, char *stack)
{
#ifdef ASM
	void **top = (void **)(stack + STACK);

	top[-2] = (void *)generate; /* swap() returns to it, with the stack as after a call */
	g->sp = top - 8;
#else
	getcontext(&g->context);
	g->context.uc_stack.ss_sp = stack;
	g->context.uc_stack.ss_size = STACK;
	makecontext(&g->context, generate, 0);
#endif
}

/* The sum of what both generators yield, and of two more ways, each ROUNDS numbers from 0 on. */
static void *work(void *above)
{
	stack_t alternate = { .ss_sp = (char *)above + STACK, .ss_size = STACK };
	struct generator a = { 0 }, b = { 0 };
	void *below = map_stack(1);
	long sum = 0;

	start(&a, above);
	start(&b, below);
	sigaltstack(&alternate, NULL);
	for (long n = 0; n < ROUNDS; n++)
		sum += next(&a) + next(&b) + step(n) + signalled(n);
	return (void *)(intptr_t)sum;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	const long right = 4L * ROUNDS * (ROUNDS - 1) / 2;
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK };
	int wrong = 0;

	sigaction(SIGUSR1, &action, NULL);
	target_ready(&o);
	for (long n = 0; n < o.repeat; n++) {
		void *mine = map_stack(2), *other = map_stack(2), *got;
		pthread_t thread;

		wrong += (long)(intptr_t)work(mine) != right;
		if (pthread_create(&thread, NULL, work, other) || pthread_join(thread, &got))
			return 1;
		wrong += (long)(intptr_t)got != right;
	}
	printf("{\"wrong\":%d,\"calls\":{\"next\":%ld,\"yield\":%ld,\"leaf\":%ld,\"step\":%ld,\"signalled\":%ld"
#ifdef ASM
	       ",\"swap\":%ld"
#endif
	       "}}\n",
	       wrong, calls_next, calls_yield, calls_leaf, calls_step, calls_signalled
#ifdef ASM
	       , calls_swap
#endif
	);
	return target_done(&o, !wrong);
}
