// SPDX-License-Identifier: BSD-2-Clause
/*
 * Instructions that may fault. A window's instructions run elsewhere, so the handler of a fault sees an address that is not the function's:
 * one that looks it up, or throws from there, does not find it.
 */
#ifndef KX_WINDOW_FAULTS_H
#define KX_WINDOW_FAULTS_H

#include <stdbool.h>

#include "plan/decode.h"

/* Whether rbp becomes the frame of the function that begins at @start, among its first instructions. */
bool kx_window_has_frame(const struct kx_code *code, uint64_t start);

/*
 * Whether the instruction reads or writes memory other than the function's frame and the module's own data, or divides. @frame: rbp is the
 * function's frame.
 */
bool kx_window_may_fault(const struct kx_insn *insn, bool frame);

#endif
