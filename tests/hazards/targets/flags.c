// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions that are called with unusual processor state: "aligned", unaligned accesses fault (AC); "down", string instructions go down (DF);
 * "gs", its segment's base is a number; "float", x87 and SSE control words, their flags and their registers, in full; the sums of all of it must stay the same.
 */
#include <immintrin.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#define CALLS 20000L
#define AC    (1ul << 18)
#define DF    (1ul << 10)

static void set_flag(unsigned long flag)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushf\n\torq %0, (%%rsp)\n\tpopf\n\tlea 128(%%rsp), %%rsp" ::"r"(flag) : "memory", "cc");
}

/* Whether the flag is still set. */
static long clear_flag(unsigned long flag)
{
	unsigned long flags;

	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushf\n\tmovq (%%rsp), %0\n\tandq %1, (%%rsp)\n\tpopf\n\tlea 128(%%rsp), %%rsp"
			 : "=&r"(flags)
			 : "r"(~flag)
			 : "memory", "cc");
	return (flags & flag) != 0;
}

static long call_with_flag(unsigned long flag, long n)
{
	long answer;

	set_flag(flag);
	answer = hz_outer(n);
	return answer + clear_flag(flag);
}

/* The x87 stack is full and its precision low, MXCSR rounds down and has a flag. */
static long call_with_floats(long n)
{
	unsigned short control = 0x0c7f, after;
	unsigned mxcsr = 0x3fa1, mxcsr_after, before = _mm_getcsr();
	double sum = 0, got;
	long answer;

	__asm__ volatile("fldcw %0" ::"m"(control));
	_mm_setcsr(mxcsr);
	for (int i = 0; i < 8; i++)
		__asm__ volatile("fldpi");
	answer = hz_outer(n);
	for (int i = 0; i < 8; i++) {
		__asm__ volatile("fstpl %0" : "=m"(got));
		sum += got;
	}
	__asm__ volatile("fnstcw %0" : "=m"(after));
	mxcsr_after = _mm_getcsr();
	_mm_setcsr(before);
	__asm__ volatile("fninit");
	return answer + (after == control && (mxcsr_after & ~0x3fu) == (mxcsr & ~0x3fu) && sum > 25.1 && sum < 25.2);
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	const char *how = o.rest ? o.rest : "aligned";
	long answer = 0;

	if (*how == 'g')
		__asm__ volatile("wrgsbase %0" ::"r"(0x1234560ul));
	for (long n = 0; n < CALLS; n++)
		answer += *how == 'f' ? call_with_floats(n) : call_with_flag(*how == 'd' ? DF : AC, n);
	return hazard_end(&o, answer, CALLS * (CALLS + 1) + CALLS);
}
