// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions that take their frame before their first cheap instruction, so that without return probes their
 * entries are recorded with the stack pointer moved: at a jcc, a call, a push. They nest, recurse, are left by
 * longjmp and run in a signal handler. Some have jumps at which their exits can be recorded.
 */
#include <setjmp.h>
#include <signal.h>

#include "target.h"

#define TIMES 100
#define DEPTH 9

#define FUNCTION(name, code)                                                                       \
	__asm__(".pushsection .text\n.balign 16\n.globl " #name "\n.type " #name ", @function\n"   \
		#name ":\n" code ".size " #name ", .-" #name "\n.popsection\n")

/* endbr64; the probe is at the call */
FUNCTION(frame_call, "endbr64\n sub $8,%rsp\n call frame_leaf\n add $8,%rsp\n ret\n");
/* Its own caller ever smaller arguments; the probe is at the jcc. */
FUNCTION(frame_jcc, "sub $0x18,%rsp\n mov %fs:0x28,%rax\n mov %rax,8(%rsp)\n test %rdi,%rdi\n je 1f\n"
		    " dec %rdi\n call frame_jcc\n inc %rax\n jmp 2f\n"
		    "1: call frame_call\n xor %eax,%eax\n2: add $0x18,%rsp\n ret\n");
/* The largest frame that a probe can make up for; the probe is at the push. */
FUNCTION(frame_push, "sub $240,%rsp\n sub $8,%rsp\n push %rbx\n mov %rdi,%rbx\n sub $8,%rsp\n call frame_call\n"
		     " add $8,%rsp\n lea 1(%rbx),%rax\n pop %rbx\n add $248,%rsp\n ret\n");
/* Pushes arguments of its call; the probe is at the call. */
FUNCTION(frame_pushed, "sub $8,%rsp\n push $7\n push 8(%rsp)\n call frame_call\n add $24,%rsp\n ret\n");
/* Leaves by a jump. */
FUNCTION(frame_tail, "add $-128,%rsp\n sub $8,%rsp\n call frame_call\n add $136,%rsp\n jmp frame_call\n");
/* Their exits are recorded at the jumps before the epilogue: at the je, which the calls pass that go on, and at the jmp. */
FUNCTION(frame_early, "push %rbx\n sub $0x10,%rsp\n mov %rdi,%rbx\n test %rdi,%rdi\n je 1f\n lea -1(%rbx),%rdi\n"
		      " call frame_early\n inc %rax\n jmp 2f\n1: xor %eax,%eax\n2: add $0x10,%rsp\n pop %rbx\n ret\n");
/* Entry and exit at the je. A return probe would need the first instruction. */
FUNCTION(frame_first, "sub $8,%rsp\n test %rdi,%rdi\n je 1f\n dec %rdi\n call frame_first\n inc %rax\n jmp 2f\n"
		      "1: xor %eax,%eax\n2: add $8,%rsp\n ret\n");
/* Calls what does not return, inside of its frame. */
FUNCTION(frame_left, "sub $8,%rsp\n call leave\n add $8,%rsp\n ret\n");

void frame_call(void);
long frame_jcc(long n);
long frame_push(long n);
void frame_pushed(void);
long frame_early(long n);
long frame_first(long n);
void frame_tail(void);
void frame_left(void);
void frame_leaf(void);
void leave(void);

static jmp_buf out;
static long leaves, handled;

void frame_leaf(void)
{
	leaves++;
}

void leave(void)
{
	longjmp(out, 1);
}

static void handler(int sig)
{
	(void)sig;
	handled += frame_push(41) == 42;
}

TRACED static long turn(long i)
{
	long right;

	frame_call();
	right = frame_jcc(DEPTH) == DEPTH;
	right += frame_push(i) == i + 1;
	right += frame_early(DEPTH) == DEPTH && frame_first(DEPTH) == DEPTH;
	frame_tail();
	frame_pushed();
	if (!setjmp(out))
		frame_left();
	else
		right++;
	raise(SIGUSR1);
	return right;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	long right = 0;

	signal(SIGUSR1, handler);
	target_ready(&o);
	for (long i = 0; i < TIMES; i++)
		right += turn(i);
	printf("{\"calls\":{\"turn\":%d,\"frame_call\":%d,\"frame_jcc\":%d,\"frame_push\":%d,\"frame_pushed\":%d,\"frame_early\":%d,\"frame_first\":%d,\"frame_tail\":%d,"
	       "\"frame_left\":%d,\"frame_leaf\":%ld},\"left\":%d}\n",
	       TIMES, 7 * TIMES, (DEPTH + 1) * TIMES, 2 * TIMES, TIMES, (DEPTH + 1) * TIMES, (DEPTH + 1) * TIMES, TIMES, TIMES, leaves, TIMES);
	return target_done(&o, right == 4 * TIMES && handled == TIMES && leaves == 7 * TIMES);
}
