// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared by the hazards' targets, for C and C++. A target defines HAZARD_FUNCTIONS, a list of its traced functions
 * (their names begin with hz_), before it includes this file; each of them begins with HIT(its name).
 * hazard_begin and hazard_end print what run.py reads:
 *     {"answer":N,"calls":{"hz_a":N,...},"own":{"hz_a":N,...}}
 * "calls" counts the calls of this process and of all that it starts, "own" only those of this process. Everything but
 * these two must be the same in every run.
 */
#ifndef HAZARD_H
#define HAZARD_H

#include <sys/mman.h>

#include "target.h"

enum hazard_function {
#define X(name) N_##name,
	HAZARD_FUNCTIONS
#undef X
	HAZARD_COUNT
};

#ifdef __cplusplus
#define HZ extern "C" TRACED
#else
#define HZ TRACED
#endif

static long hazard_own[HAZARD_COUNT + 1];
/* Shared with children, also through exec: the environment's HAZARD_FD is the memory's descriptor. */
static long *hazard_calls = hazard_own;

/* The volatile read is the function's first instruction: the kernel takes no probe on one with a lock prefix. */
#define HIT(name)                                                                                    \
	do {                                                                                         \
		(void)*(long *volatile *)&hazard_calls;                                              \
		__atomic_add_fetch(&hazard_own[N_##name], 1, __ATOMIC_RELAXED);                      \
		if (hazard_calls != hazard_own)                                                      \
			__atomic_add_fetch(&hazard_calls[N_##name], 1, __ATOMIC_RELAXED);            \
	} while (0)

static inline struct target_options hazard_begin(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	const char *inherited = getenv("HAZARD_FD");
	int fd = inherited ? atoi(inherited) : memfd_create("counts", 0);
	char text[16];
	void *shared;

	if (fd < 0 || (!inherited && ftruncate(fd, 4096)))
		exit(3);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		exit(3);
	hazard_calls = (long *)shared;
	snprintf(text, sizeof(text), "%d", fd);
	setenv("HAZARD_FD", text, 1);
	if (!inherited)
		target_ready(&o);
	return o;
}

static inline int hazard_list(char *text, int size, const char *key, const long *counts)
{
	static const char *const names[] = {
#define X(name) #name,
		HAZARD_FUNCTIONS
#undef X
	};
	int n = snprintf(text, size, ",\"%s\":{", key);

	for (int i = 0; i < HAZARD_COUNT; i++)
		n += snprintf(text + n, size - n, "%s\"%s\":%ld", i ? "," : "", names[i], counts[i]);
	return n + snprintf(text + n, size - n, "}");
}

/* Prints the result by one write, as a program under seccomp must, and returns main's exit status. */
static inline int hazard_end(const struct target_options *o, long answer, long expected)
{
	char text[2048];
	int n = snprintf(text, sizeof(text), "{\"answer\":%ld", answer);

	n += hazard_list(text + n, sizeof(text) - n, "calls", hazard_calls);
	n += hazard_list(text + n, sizeof(text) - n, "own", hazard_own);
	n += snprintf(text + n, sizeof(text) - n, "}\n");
	if (write(STDOUT_FILENO, text, n) != n)
		return 2;
	return answer == expected ? o->exit_status : 1;
}

#endif
