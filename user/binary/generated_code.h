// SPDX-License-Identifier: BSD-2-Clause
/*
 * Code that a process has generated at run time (JIT compilers, trampolines) or mapped from a file that is no ELF:
 * executable mappings that are no module. Searched for switches of stacks (stack_switch.h) in the process's memory.
 *
 * Cost: what is in memory of these mappings is read once and scanned, so more than
 * KX_GENERATED_MAX is not read at all. Code that is generated later is not seen:
 * where the kernel has uprobe sessions (6.13), the check of each call's stack (bpf/native_stack.bpf.h) keeps it harmless, else
 * modules that can generate code have no return probes (kx_unwind_risk_unguarded).
 */
#ifndef KX_GENERATED_CODE_H
#define KX_GENERATED_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "binary/modules.h"

/* The first word ("xkpatch2") of what a recording in process has made (tracer/patch_area.h): that code is looked at where it is made. */
#define KX_OWN_CODE_MAGIC 0x3268637461706b78

/* Bytes of code in memory, over all mappings. */
#define KX_GENERATED_MAX (32u << 20)

enum kx_generated {
	KX_GENERATED_PLAIN,   /* no switch was found */
	KX_GENERATED_SWITCH,  /* of stacks */
	KX_GENERATED_TOO_MUCH,
	KX_GENERATED_UNKNOWN, /* the memory cannot be read: the process may have ended */
};

/* @mods: those of process @pid. @address gets where a switch is. */
enum kx_generated kx_generated_code_scan(pid_t pid, const struct kx_modules *mods, uint64_t *address);

#endif
