// SPDX-License-Identifier: BSD-2-Clause
/* The code of patched() is mapped writable, where the kernel sets no probes; that of plain() is not. */
#include <stdint.h>
#include <sys/mman.h>

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

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);

	if (mprotect((void *)(uintptr_t)patched, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
		return 1;
	target_ready(&o);
	work(o.repeat * CALLS);
	printf("{\"calls\":{\"plain\":%ld,\"patched\":%ld}}\n", calls_plain, calls_patched);
	return target_done(&o, 1);
}
