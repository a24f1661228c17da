// SPDX-License-Identifier: BSD-2-Clause
/*
 * Touches each page of a mapping first in a known way: writes, reads, and writes by the kernel. Prints the
 * mapping's address and, for each of the three, the page faults that the kernel counted.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGES 64
#define PAGE 4096L

static volatile char *map;
static int zero;

static long faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_minflt + u.ru_majflt;
}

__attribute__((noinline)) long write_pages(void)
{
	long before = faults();

	for (int i = 0; i < PAGES; i++)
		map[i * PAGE + i] = 1;
	return faults() - before;
}

__attribute__((noinline)) long read_pages(void)
{
	long before = faults();
	char sum = 0;

	for (int i = 0; i < PAGES; i++)
		sum += map[(PAGES + i) * PAGE];
	*map = sum;
	return faults() - before;
}

__attribute__((noinline)) long kernel_writes(void)
{
	long before = faults();

	for (int i = 0; i < PAGES; i++)
		if (read(zero, (char *)map + (2 * PAGES + i) * PAGE, 1) != 1)
			abort();
	return faults() - before;
}

int main(void)
{
	long w, r, k;

	zero = open("/dev/zero", O_RDONLY);
	map = mmap(NULL, 3 * PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise((void *)map, 3 * PAGES * PAGE, MADV_NOHUGEPAGE);
	faults(); /* resolves what is resolved at the first call */
	w = write_pages();
	r = read_pages();
	k = kernel_writes();
	printf("%ld %ld %ld %ld\n", (long)map, w, r, k);
	return 0;
}
