// SPDX-License-Identifier: BSD-2-Clause
/*
 * A function that begins with a nop of 5 bytes: it is called some times, then once in each of some children that are forked. Prints how many calls
 * this process made, and how many children ended otherwise than they should.
 */
#include <sys/wait.h>

#include "target.h"

#define CALLS	 20 /* the kernel optimizes a probed nop at its first hits */
#define CHILDREN 10

int hot_patched(int x); /* x + 1 */
__asm__(".pushsection .text\n"
	".globl hot_patched\n"
	".type hot_patched, @function\n"
	"hot_patched:\n"
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"	lea 1(%rdi), %eax\n"
	"	ret\n"
	".size hot_patched, .-hot_patched\n"
	".popsection\n");

int main(int argc, char **argv)
{
	const struct target_options o = target_parse(argc, argv);
	int wrong = 0, sum = 0, status;

	target_ready(&o);
	for (int i = 0; i < CALLS; i++)
		sum += hot_patched(i);
	for (int i = 0; i < CHILDREN; i++) {
		const pid_t pid = fork();

		if (!pid)
			_exit(hot_patched(i) == i + 1 ? 7 : 1);
		wrong += waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 7;
	}
	printf("{\"calls\":{\"hot_patched\":%d},\"sum\":%d,\"wrong\":%d}\n", CALLS, sum, wrong);
	return target_done(&o, !wrong);
}
