// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions with windows at known places, in which tests/live/patcher.c writes jumps: p_add0 to p_add63 return their argument and a number
 * of their own. Some threads call all of them and check each result.
 *
 *     patched [THREADS [stuck [altstack]]]      1 thread unless given; THREADS late: the thread enters p_stuck at "l"
 *
 * stuck: one more thread stays in a window of p_stuck, interrupted by a signal whose handler waits (on a stack of its own: altstack).
 * Prints "ready", then for each byte of standard input a line: "right" or "wrong" calls since the last one, and "forked" for f, where a
 * child has checked the same calls; "d" lets the thread out of p_stuck; k starts a child that stays, "child PID", until it gets SIGTERM, and then
 * ends with status 0 if it was right; "v" starts one by vfork, which ends by the next byte; "s" is for seccomp; "e" executes the program again, without arguments. Ends at the input's end.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "target.h"

#define FUNCTIONS 64

/* The window: mov and lea behind the first instruction, 8 bytes. The other parts are as a compiler makes them. */
__asm__(".text\n"
	".p2align 12\n"
	".skip 3584, 0x90\n" /* the functions are in two pages */
	".p2align 4\n"
	".set number, 0\n"
	".rept 64\n"
	"push %rbx\n"
	"mov %rdi, %rbx\n"		/* window */
	"lea number+1000(%rbx), %rax\n"	/* 7 bytes: a displacement of 32 bits */
	"pop %rbx\n"
	"ret\n"
	".p2align 4\n"
	".set number, number + 1\n"
	".endr\n"
	".globl p_stuck\n"
	"p_stuck:\n"
	"push %rbx\n"
	"mov %rdi, %rbx\n"
	"ud2\n"
	"nopl (%rax)\n"
	"mov %rbx, %rax\n"
	"pop %rbx\n"
	"ret\n");

extern long p_stuck(long n);
extern char p_functions[];
__asm__(".set p_functions, p_stuck - 64 * 16\n.globl p_functions\n");

static atomic_long calls, wrong;
static atomic_int over, is_stuck, let_in, let_out;

static long call(int function, long n)
{
	return ((long (*)(long))(p_functions + 16 * function))(n);
}

static long check_all(void)
{
	long bad = 0;

	for (int i = 0; i < FUNCTIONS; i++)
		bad += call(i, 7 * i) != 7 * i + i + 1000;
	return bad;
}

static void *work(void *arg)
{
	while (!over) {
		const long bad = check_all();

		wrong += bad;
		calls += FUNCTIONS;
	}
	return arg;
}

static void on_ud2(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	is_stuck = 1;
	while (!let_out)
		usleep(1000);
	uc->uc_mcontext.gregs[REG_RIP] += 2;
}

static void *be_stuck(void *arg)
{
	static char memory[65536];
	const stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	const struct sigaction sa = { .sa_sigaction = on_ud2, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	while (!let_in)
		usleep(1000);
	if (arg)
		sigaltstack(&stack, NULL);
	sigaction(SIGILL, &sa, NULL);
	wrong += p_stuck(5) != 5;
	return NULL;
}

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

static void check_in_child(void)
{
	int status = 0;
	const pid_t pid = fork();

	if (!pid)
		_exit(check_all() != 0);
	wrong += waitpid(pid, &status, 0) != pid || status;
}

static volatile sig_atomic_t ends;

static void on_term(int sig)
{
	(void)sig;
	ends = 1;
}

static void start_child(void)
{
	pid_t pid;

	signal(SIGTERM, on_term);
	pid = fork();
	if (!pid) {
		long bad = 0;

		while (!ends)
			bad += check_all();
		_exit(bad != 0);
	}
	signal(SIGTERM, SIG_DFL);
	printf("child %d\n", (int)pid);
}

static void wait_in_vfork(void)
{
	const pid_t pid = vfork();

	if (!pid) {
		char c;

		_exit(read(STDIN_FILENO, &c, 1) != 1);
	}
	waitpid(pid, NULL, 0);
}

static void allow_all(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog filter = { 1, &allow };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	wrong += prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0;
}

int main(int argc, char **argv)
{
	const int nthreads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t threads[64], stuck;
	int c;

	for (int i = 0; i < nthreads; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	if (argc > 2)
		pthread_create(&stuck, NULL, be_stuck, argc > 3 ? argv : NULL);
	let_in = argc > 2 && !strcmp(argv[2], "stuck");
	while (let_in && !is_stuck)
		usleep(1000);
	say("ready");
	while ((c = target_getc()) != EOF) {
		const long before = calls;

		if (c == 'f')
			check_in_child();
		if (c == 'k')
			start_child();
		if (c == 'v')
			wait_in_vfork();
		if (c == 's')
			allow_all();
		if (c == 'e')
			execl("/proc/self/exe", "patched", NULL);
		let_in |= c == 'l';
		while (let_in && !is_stuck)
			usleep(1000);
		if (c == 'l')
			puts("late");
		let_out |= c == 'd';
		while (nthreads && calls < before + 2 * FUNCTIONS * nthreads)
			usleep(100);
		say(wrong ? "wrong" : c == 'f' ? "forked" : "right");
	}
	over = let_in = let_out = 1;
	for (int i = 0; i < nthreads; i++)
		pthread_join(threads[i], NULL);
	if (argc > 2)
		pthread_join(stuck, NULL);
	printf("{\"wrong\":%ld}\n", (long)wrong);
	return wrong != 0;
}
