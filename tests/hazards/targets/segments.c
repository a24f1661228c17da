// SPDX-License-Identifier: BSD-2-Clause
/*
 * Its thread pointer is a number and no address while it calls, set by arch_prctl(2), or with HAZARD_INSTRUCTION by wrfsbase.
 */
#include <asm/prctl.h>
#include <sys/syscall.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#define CALLS 2000L
#define VALUE 0x1234560ul

/* Makes no call of libc, which would need its own. */
static void set_pointer(unsigned long value)
{
#ifdef HAZARD_INSTRUCTION
	__asm__ volatile("wrfsbase %0" ::"r"(value));
#else
	long code = SYS_arch_prctl;

	__asm__ volatile("syscall" : "+a"(code) : "D"((long)ARCH_SET_FS), "S"(value) : "rcx", "r11", "memory");
#endif
}

static long borrowed(void)
{
	unsigned long own;
	long answer;

	__asm__ volatile("rdfsbase %0" : "=r"(own));
	set_pointer(VALUE);
	answer = hz_outer(5);
	set_pointer(own);
	return answer;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	long answer = 0;

	for (long n = 0; n < CALLS; n++)
		answer += borrowed();
	return hazard_end(&o, answer, CALLS * 12);
}
