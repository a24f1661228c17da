// SPDX-License-Identifier: BSD-2-Clause
/*
 * Instructions of windows that may fault. A window's instructions run elsewhere, so the handler of a fault sees an address that is not the function's:
 * one that looks it up, or throws from there, does not find it.
 */
#ifndef KX_WINDOW_FAULTS_H
#define KX_WINDOW_FAULTS_H

#include <stdbool.h>

#include "plan/decode.h"
#include "plan/windows.h"

/*
 * Whether one of the windows' instructions reads or writes memory other than the function's frame and the module's own data, or divides. The function
 * begins at @start, by which it is known whether rbp is its frame.
 */
bool kx_windows_may_fault(const struct kx_code *code, uint64_t start, const struct kx_windows *windows);

#endif
