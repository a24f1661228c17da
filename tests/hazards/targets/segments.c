// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads whose thread pointer is something else for a while: "base", a number that is no address, by arch_prctl; "instruction", the same by
 * wrfsbase; "end", the last bytes of a page, behind which nothing is mapped; "gs", the other one.
 */
#include <asm/prctl.h>
#include <sys/syscall.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#define CALLS 2000L
#define PAGE  4096ul

static unsigned long get(void)
{
	unsigned long base;

	__asm__ volatile("rdfsbase %0" : "=r"(base));
	return base;
}

__attribute__((optimize("no-stack-protector"))) static long borrowed(const char *how, unsigned long value)
{
	const unsigned long own = get();
	long answer, code, wanted = ARCH_SET_FS;

	if (*how == 'b') {
		__asm__ volatile("syscall" : "=a"(code) : "a"(SYS_arch_prctl), "D"(wanted), "S"(value) : "rcx", "r11", "memory");
	} else {
		__asm__ volatile("wrfsbase %0" ::"r"(value));
	}
	answer = hz_outer(5);
	__asm__ volatile("wrfsbase %0" ::"r"(own));
	return answer;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	const char *how = o.rest ? o.rest : "base";
	char *pages = (char *)mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long value = 0x1234560;
	long answer = 0;

	if (pages == MAP_FAILED || munmap(pages + PAGE, PAGE))
		return 2;
	if (*how == 'e') {
		value = (unsigned long)pages + PAGE - 16;
		*(unsigned long *)value = value;
	}
	for (long n = 0; n < CALLS; n++) {
		if (*how == 'g')
			__asm__ volatile("wrgsbase %0" ::"r"(value));
		answer += *how == 'g' ? hz_outer(5) : borrowed(how, value);
	}
	return hazard_end(&o, answer, CALLS * 12);
}
