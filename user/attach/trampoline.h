// SPDX-License-Identifier: BSD-2-Clause
/* The code that a jump leads to: guards or records, runs the window's own instructions, goes back. */
#ifndef KX_TRAMPOLINE_H
#define KX_TRAMPOLINE_H

#include <stdint.h>

#include "attach/tsc_guard.h"
#include "plan/decode.h"
#include "plan/windows.h"

#define KX_TRAMPOLINE_MOST 1024 /* bytes */

struct kx_trampoline_place {
	uint64_t bias;	   /* added to the module's addresses */
	uint64_t at;	   /* of the trampoline in the target */
	uint64_t head;	   /* of struct kx_patch_head, within 2 GiB */
	uint64_t recorder; /* of kx_recorder_fn, within 2 GiB */
	/* NULL, or what guards the function: all of its calls pass the window with their
	 * first arguments still in rdi, rsi and rdx */
	const struct kx_guard *guard;
};

/*
 * Writes it to @to (KX_TRAMPOLINE_MOST bytes). Returns its size, the same wherever it is; 0 if it
 * cannot be made: an instruction that cannot be moved, an exit by loop or jrcxz, too far away.
 */
unsigned kx_trampoline_make(const struct kx_code *code, const struct kx_window *w, uint32_t func,
			    const struct kx_trampoline_place *p, uint8_t *to);

#endif
