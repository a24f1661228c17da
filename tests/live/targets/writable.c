// SPDX-License-Identifier: BSD-2-Clause
/*
 * The code of patched() is mapped writable, where the kernel sets no probes; that of plain() is not. With an argument
 * the program does nothing but start that program, and waits for it.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "target.h"

#define PAGE 4096
#define CALLS 1000

static volatile long sink;
static long calls_plain, calls_patched;

TRACED __attribute__((aligned(PAGE))) long plain(void)
{
	calls_plain++;
	return ++sink;
}

TRACED __attribute__((aligned(PAGE))) long patched(void)
{
	calls_patched++;
	return ++sink;
}

TRACED __attribute__((aligned(PAGE))) long work(long n)
{
	for (long i = 0; i < n; i++) {
		plain();
		patched();
	}
	return sink;
}

static int run(const char *program)
{
	pid_t pid = fork();

	if (!pid) {
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	return pid < 0 || waitpid(pid, NULL, 0) != pid;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);

	if (!o.rest && mprotect((void *)(uintptr_t)patched, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
		return 1;
	target_ready(&o);
	if (o.rest && run(o.rest))
		return 1;
	if (!o.rest)
		work(o.repeat * CALLS);
	printf("{\"calls\":{\"plain\":%ld,\"patched\":%ld}}\n", calls_plain, calls_patched);
	return target_done(&o, 1);
}
