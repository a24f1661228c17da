// SPDX-License-Identifier: BSD-2-Clause
/* Adds up the bytes of its own functions before and behind the byte on standard input: whether both
 * are the same. */
#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

static unsigned long sum_of(long (*function)(long))
{
	const volatile unsigned char *code = (const unsigned char *)function;
	unsigned long sum = 0;

	for (int i = 0; i < 32; i++)
		sum = sum * 31 + code[i];
	return sum;
}

int main(int argc, char **argv)
{
	const unsigned long before = sum_of(hz_outer) ^ sum_of(hz_leaf);
	struct target_options o = hazard_begin(argc, argv);
	long answer = 0;

	for (long n = 0; n < 2000; n++)
		answer += hz_outer(n);
	return hazard_end(&o, answer + ((sum_of(hz_outer) ^ sum_of(hz_leaf)) == before),
			  2000 * 2001 + 1);
}
