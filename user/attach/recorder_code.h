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

/* Its bytes, to be copied as they are; @entry: offset of kx_recorder_fn in them. */
const uint8_t *kx_recorder_code(size_t *size, size_t *entry);

/* A clause about why neither it nor trampolines can run on this machine; NULL if they can. */
const char *kx_recorder_cpu_lacks(void);

#endif
