// SPDX-License-Identifier: BSD-2-Clause
/*
 * The recorder that runs in the target: position-independent code of kxray's own binary
 * (recorder_code.c, built without anything but general registers), copied into each code area.
 * Every trampoline calls it.
 */
#ifndef KX_RECORDER_CODE_H
#define KX_RECORDER_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "tracer/patch_area.h"

/*
 * It changes rax, rcx, rdx, rsi, rdi, r8 to r10 and the flags, keeps all other registers, uses at
 * most KX_RECORDER_STACK bytes of stack, makes no system call and touches no memory but the stack,
 * *@head, the rings and the thread's id.
 * @what: function id | kind << 28 (enum kx_event_kind: ENTRY 1, EXIT 2, TAIL_EXIT 3). @sp: the
 * stack pointer as it was at the call's first instruction.
 */
typedef void kx_recorder_fn(uint32_t what, uint64_t sp, struct kx_patch_head *head);

#define KX_RECORDER_STACK 256

/*
 * Selector of the segment whose limit has the CPU's number in its low bits, as TSC_AUX has (arch/x86/include/asm/segment.h,
 * GDT_ENTRY_CPUNODE, VDSO_CPUNODE_BITS).
 */
#define KX_RECORDER_CPU_SEGMENT 0x7bu
#define KX_RECORDER_CPU_MASK	0xfffu

/* How it finds the thread's control block. */
enum kx_recorder_tcb_by {
	KX_RECORDER_TCB_BY_FSBASE, /* rdfsbase: whatever the thread pointer is */
	/*
	 * What it points at, twice: ends a thread that has its own (CLONE_SETTLS) where nothing is mapped, so programs that may start
	 * such threads are refused (risky_calls.h).
	 */
	KX_RECORDER_TCB_BY_SEGMENT,
};

/* The first if programs may use rdfsbase here (Linux 5.9, and not all virtual machines). */
enum kx_recorder_tcb_by kx_recorder_tcb_by_here(void);

/* Its bytes, to be copied as they are; @entry: offset of kx_recorder_fn in them. */
const uint8_t *kx_recorder_code(enum kx_recorder_tcb_by by, size_t *size, size_t *entry);

/* A clause about why neither it nor trampolines can run on this machine; NULL if they can. */
const char *kx_recorder_cpu_lacks(void);

#endif
