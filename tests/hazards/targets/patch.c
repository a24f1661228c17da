// SPDX-License-Identifier: BSD-2-Clause
/*
 * Self-modifying code: 200 times the program makes the page of a traced function writable, changes the constant that
 * the function returns, and makes it executable again. Between, it generates code in another page and calls it.
 */
#define HAZARD_FUNCTIONS X(hz_patched) X(hz_called)
#include "hazard.h"

#define MAGIC 0x5ca1ab1e

HZ long hz_patched(void)
{
	long value;

	HIT(hz_patched);
	__asm__ volatile("movl %1, %k0" : "=r"(value) : "i"(MAGIC));
	return value;
}

HZ long hz_called(long n)
{
	HIT(hz_called);
	return n + 1;
}

/* mov edi, n; mov rax, hz_called; jmp rax */
static void generate(unsigned char *code, int n)
{
	long (*called)(long) = hz_called;
	int at = 0;

	code[at++] = 0xbf;
	memcpy(code + at, &n, 4), at += 4;
	code[at++] = 0x48, code[at++] = 0xb8;
	memcpy(code + at, &called, 8), at += 8;
	code[at++] = 0xff, code[at++] = 0xe0;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	unsigned char *jit = (unsigned char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
						   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int magic = MAGIC;
	unsigned char *constant = (unsigned char *)memmem((void *)hz_patched, 64, &magic, 4);
	char *page = (char *)((unsigned long)constant & -4096);
	long answer = 0, expected = 0;

	if (jit == MAP_FAILED || !constant)
		return 2;
	for (int n = 0; n < 200; n++) {
		if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
			return 2;
		memcpy(constant, &n, 4);
		answer += hz_patched();
		if (mprotect(page, 8192, PROT_READ | PROT_EXEC))
			return 2;
		answer += hz_patched();
		generate(jit, n);
		answer += ((long (*)(void))jit)();
		expected += 3 * n + 1;
	}
	return hazard_end(&o, answer, expected);
}
