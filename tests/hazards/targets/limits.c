// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a process may and may not do with its memory. Set before it is traced: "mdwe", no memory may become writable and executable; "sealed",
 * its code may not be changed by mprotect; "address-space" and "data", limits that leave it 24 MiB; "locked", all that is mapped is locked;
 * "executable", all that is mapped is executable; "real-time", a millisecond with a real-time priority ends it; "narrow", of the addresses that a jump reaches only 3 MiB are free; "full", none.
 * Set while it is traced: "mdwe-late", "sealed-late". "grows": a stack that the kernel grows down, below which all was free.
 */
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif

#define MIB    (1ul << 20)
#define LEFT   (24 * MIB)
#define CALLS  2000
#define DEPTH  (3 * MIB)
#define PAGE   4096ul
#define REACH  (2048 * MIB)

static char *stack_top;

static size_t in_status(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	size_t kib = 0, n = strlen(name);
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, n) && line[n] == ':')
			kib = strtoul(line + n + 1, NULL, 10);
	if (f)
		fclose(f);
	return kib << 10;
}

static void limit_to(int resource, size_t most)
{
	const struct rlimit r = { most, most };

	if (setrlimit(resource, &r))
		exit(2);
}

static void limit(int resource, const char *name)
{
	limit_to(resource, in_status(name) + LEFT);
}

static void seal(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2 && from <= (unsigned long)&hz_leaf && to > (unsigned long)&hz_leaf)
			syscall(SYS_mseal, from, to - from, 0);
	if (f)
		fclose(f);
}

/* From where to where there are mappings whose line in maps has @text. */
static void find_mappings(const char *text, unsigned long *from, unsigned long *to)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512];

	*from = *to = 0;
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, text) && sscanf(line, "%lx-%lx ", &start, &end) == 2) {
			*from = *from ? *from : start;
			*to = end;
		}
	if (f)
		fclose(f);
}

static void take(unsigned long from, unsigned long to)
{
	const int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;

	if (from < to && mmap((void *)from, to - from, PROT_NONE, kind, -1, 0) == MAP_FAILED)
		exit(2);
}

/* Reserves what is near to the program's code but @left bytes below it, and room for the heap. */
static void reserve(unsigned long left)
{
	unsigned long from, to, heap, heap_end;

	if (munmap(stack_top - PAGE, PAGE))
		exit(2);
	find_mappings("/limits", &from, &to);
	find_mappings("[heap]", &heap, &heap_end);
	take(from - REACH, from - left);
	take(to, heap);
	take(heap_end + 64 * MIB, from + REACH);
}

/* All mappings that vm.max_map_count allows but one, for hazard_begin: no two neighbours are alike. */
static void take_mappings(void)
{
	char *at, *last = NULL;

	for (int prot = PROT_NONE;; prot ^= PROT_READ, last = at) {
		at = (char *)mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			break;
	}
	munmap(last, PAGE);
}

static void set(const char *what)
{
	if (!strcmp(what, "narrow"))
		reserve(3 * MIB);
	else if (!strcmp(what, "full"))
		reserve(0);
	else if (!strcmp(what, "mappings"))
		take_mappings();
	else if (!strcmp(what, "mdwe"))
		prctl(PR_SET_MDWE, 1L, 0L, 0L, 0L);
	else if (!strcmp(what, "sealed"))
		seal();
	else if (!strcmp(what, "address-space"))
		limit(RLIMIT_AS, "VmSize");
	else if (!strcmp(what, "data"))
		limit(RLIMIT_DATA, "VmData");
	else if (!strcmp(what, "real-time"))
		limit_to(RLIMIT_RTTIME, 1000);
	else if (!strcmp(what, "executable") && personality(READ_IMPLIES_EXEC) < 0)
		exit(2);
	else if (!strcmp(what, "locked") && mlockall(MCL_CURRENT | MCL_FUTURE))
		exit(2);
}

/* The memory that the limits leave is all there. */
static void take_memory(void)
{
	char *p = (char *)mmap(NULL, LEFT - MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		printf("no memory\n");
	else
		munmap(p, LEFT - MIB);
}

/* Calls hz_outer at each page of a stack that begins with one page. */
static long on_stack(long n)
{
	long answer;

	__asm__ volatile("movq %%rsp, %%rbx\n\tmovq %[sp], %%rsp\n\tmovq %[n], %%rdi\n\tcall hz_outer\n\tmovq %%rbx, %%rsp"
			 : "=a"(answer)
			 : [sp] "r"(stack_top - n * (DEPTH / CALLS) / 16 * 16), [n] "r"(n)
			 : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
	return answer;
}

int main(int argc, char **argv)
{
	/* a new mapping is often below all others, and so is what is near to code: here below that of the program */
	char *page = (char *)mmap((void *)(((unsigned long)hz_leaf & ~(64 * PAGE - 1)) - 64 * PAGE), PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
	const char *how = argc > 1 ? argv[argc - 1] : "";
	struct target_options o;
	long answer = 0;
	const int grows = !strcmp(how, "grows");

	stack_top = page + PAGE;
	set(how);
	o = hazard_begin(argc, argv);
	for (long n = 0; n < CALLS; n++) {
		answer += grows ? on_stack(n) : hz_outer(n);
		if (n == CALLS / 2 && !strcmp(how, "mdwe-late"))
			set("mdwe");
		if (n == CALLS / 2 && !strcmp(how, "sealed-late"))
			set("sealed");
		if (n % 100 == 0 && (!strcmp(how, "address-space") || !strcmp(how, "data")))
			take_memory();
	}
	return hazard_end(&o, answer, CALLS * (CALLS + 1L));
}
