// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls by which a thread forbids itself, and all that it starts, to read the time stamp counter:
 * the recorder would end the process by SIGSEGV. What the process may call is looked at before
 * (risky_calls.h), but a library that it loads later may make such a call before kxray sees it. So
 * the C library's functions that can make it get a jump as well, a guard: it is no recorded call,
 * needs no exit, and ends the recording before the system call begins.
 */
#ifndef KX_TSC_GUARD_H
#define KX_TSC_GUARD_H

#include <stddef.h>
#include <stdint.h>

#define KX_GUARD_ARGUMENTS 3
#define KX_GUARD_CALLS	   3

/* The function's first arguments of such a call; the kernel looks at 32 bits of each. */
struct kx_guard_call {
	unsigned n;
	uint32_t arguments[KX_GUARD_ARGUMENTS];
};

struct kx_guard {
	const char *function;
	unsigned ncalls;
	struct kx_guard_call calls[KX_GUARD_CALLS];
};

#define KX_GUARDS 2
extern const struct kx_guard kx_guards[KX_GUARDS];

#endif
