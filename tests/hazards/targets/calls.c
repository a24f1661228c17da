// SPDX-License-Identifier: BSD-2-Clause
/* Plain calls of some kinds: leaves, nested, recursive, through a pointer, tail calls. Built with many flags. */
#define HAZARD_FUNCTIONS X(hz_leaf) X(hz_outer) X(hz_recursive) X(hz_tail) X(hz_variadic) X(hz_large)
#include <stdarg.h>

#include "outer_leaf.h"

HZ long hz_recursive(int n)
{
	HIT(hz_recursive);
	sink = n ? hz_recursive(n - 1) : hz_leaf(0);
	return sink + 1;
}

HZ long hz_tail(long n)
{
	HIT(hz_tail);
	return hz_leaf(n);
}

HZ long hz_variadic(int count, ...)
{
	long sum = 0;
	va_list list;

	HIT(hz_variadic);
	va_start(list, count);
	while (count--)
		sum += va_arg(list, long);
	va_end(list);
	return sum;
}

/* Enough stack for -fsplit-stack to ask for more, and a frame of more than one page */
HZ long hz_large(int n)
{
	volatile char block[20000];

	HIT(hz_large);
	block[n] = (char)n;
	block[19999 - n] = 1;
	// The store keeps gcc from turning the recursion into a loop.
	sink = n ? hz_large(n - 1) : 0;
	return block[n] + sink;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	long (*volatile pointer)(long) = hz_outer;
	long answer = 0, expected = 0;

	for (long n = 0; n < 1000; n++) {
		answer += pointer(n) + hz_tail(n) + hz_variadic(3, n, n, 1L);
		expected += 2 * (n + 1) + n + 1 + 2 * n + 1;
	}
	for (int i = 0; i < 10; i++) {
		answer += hz_recursive(100) + hz_large(50);
		expected += 102 + 50 * 51 / 2;
	}
	return hazard_end(&o, answer, expected);
}
