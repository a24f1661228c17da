// SPDX-License-Identifier: BSD-2-Clause
/*
 * A generator on a stack of its own, as a JIT compiler's coroutines: the code that switches stacks is in anonymous
 * memory, in no file. hz_resume() and hz_yield() are open on two stacks at once and end in another order than they
 * began. With the argument "much", 40 MiB of other code lie before it; with "unlinked", it is in a file without a name; with
 * "late", it is generated when the program is traced already. A function that calls none is the first one to run on the second stack.
 */
#define HAZARD_FUNCTIONS X(hz_resume) X(hz_yield) X(hz_leaf)
#include "hazard.h"

#define STACK  (256 << 10)
#define ROUNDS 1000
#define MUCH   (40 << 20)

/* Saves the stack pointer in *@save and continues where @to was saved. */
static void (*swap_stacks)(void **save, void *to);
static void *main_sp, *generator_sp;
static long value;

static const unsigned char swap_code[] = {
	0x55, 0x53, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, /* push rbp, rbx, r12 to r15 */
	0x48, 0x89, 0x27,					    /* mov [rdi], rsp */
	0x48, 0x89, 0xf4,					    /* mov rsp, rsi */
	0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0x5d, 0xc3,
};

HZ long hz_leaf(long n)
{
	HIT(hz_leaf);
	return n + 1;
}

HZ long hz_yield(long n)
{
	HIT(hz_yield);
	value = n;
	swap_stacks(&generator_sp, main_sp);
	return hz_leaf(n);
}

HZ long hz_resume(void)
{
	HIT(hz_resume);
	swap_stacks(&main_sp, generator_sp);
	return value;
}

static void generate(void)
{
	for (long n = hz_leaf(-1);;)
		n = hz_yield(n);
}

static void *map(size_t size, int protection, int fd)
{
	void *p = mmap(NULL, size, protection, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		exit(2);
	return p;
}

/* Generates swap_stacks() and the generator's stack. */
static void prepare(const char *how)
{
	size_t before = strcmp(how, "much") ? 0 : MUCH;
	int fd = strcmp(how, "unlinked") ? -1 : memfd_create("code", 0);
	unsigned char *code;
	void **top;

	if (fd >= 0 && ftruncate(fd, 4096))
		exit(2);
	code = (unsigned char *)map(before + 4096, PROT_READ | PROT_WRITE, fd);
	memset(code, 0x90, before);
	memcpy(code + before, swap_code, sizeof(swap_code));
	if (mprotect(code, before + 4096, PROT_READ | PROT_EXEC))
		exit(2);
	swap_stacks = (void (*)(void **, void *))(code + before);
	top = (void **)((char *)map(STACK, PROT_READ | PROT_WRITE, -1) + STACK);
	top[-2] = (void *)generate; /* what swap_stacks returns to, with the stack as after a call */
	generator_sp = top - 8;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[argc - 1] : "";
	int late = !strcmp(how, "late");
	struct target_options o;
	long answer = 0;

	if (!late)
		prepare(how);
	o = hazard_begin(argc, argv);
	if (late)
		prepare(how);
	for (int n = 0; n < ROUNDS; n++)
		answer += hz_resume();
	return hazard_end(&o, answer, (long)ROUNDS * (ROUNDS - 1) / 2);
}
