// SPDX-License-Identifier: BSD-2-Clause
/*
 * Drops the pages of its text while it runs, so that they are read again from the file. With the argument "moved" it moves
 * its text, as programs do that want it in huge pages: the traced functions are copied to an anonymous mapping that then
 * takes their place. Built with HAZARD_MAPPED it makes nothing executable by mprotect.
 */
#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include <stdbool.h>

#include "hazard.h"

static volatile long sink;

#define MOVED __attribute__((section("moved"), aligned(4096)))

HZ MOVED long hz_leaf(long n)
{
	HIT(hz_leaf);
	return n + 1;
}

HZ MOVED long hz_outer(long n)
{
	HIT(hz_outer);
	sink = hz_leaf(n);
	return sink + hz_leaf(n);
}

static long work(void)
{
	long sum = 0;

	for (long n = 0; n < 500; n++) {
		sum += hz_outer(n);
		if (n % 20 == 0)
			target_pause(1);
	}
	return sum;
}

/* Puts a copy of the text at its place. */
static bool move(char *text, size_t size)
{
#ifdef HAZARD_MAPPED
	const int protection = PROT_READ | PROT_WRITE | PROT_EXEC;
#else
	const int protection = PROT_READ | PROT_WRITE;
#endif
	char *copy = (char *)mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return false;
	memcpy(copy, text, size);
#ifndef HAZARD_MAPPED
	if (mprotect(copy, size, PROT_READ | PROT_EXEC))
		return false;
#endif
	return mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, text) != MAP_FAILED;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	extern char __start_moved, __stop_moved;
	size_t size = (&__stop_moved - &__start_moved + 4095) & -4096;
	long answer = work();

	if (o.rest ? !move(&__start_moved, size) : madvise(&__start_moved, size, MADV_DONTNEED))
		return 2;
	answer += work();
	return hazard_end(&o, answer, 2 * 500 * 501);
}
