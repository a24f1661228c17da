// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where trampolines go, so that neither a debugger's breakpoint nor a probe of another tool inside
 * a window makes its jump a wild one.
 *
 * A breakpoint in the middle of a window (at an instruction that is no more) changes byte k of the
 * jump's displacement to 0xcc. So for each instruction start behind the window's first byte the
 * jump with that byte changed leads to a stub: a jump to the same trampoline. No byte of a
 * displacement is 0xcc itself: the kernel, when it removes a uprobe, writes the original
 * instruction's byte where it finds 0xcc.
 */
#ifndef KX_JUMP_SPACE_H
#define KX_JUMP_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/windows.h"

/* Displacements whose last byte is 0xcc: -0x34000000 to -0x33000001. */
#define KX_FAR_FROM 0x34000000
#define KX_FAR_TO   0x33000000

struct kx_jump_space; /* which bytes of a code area and its far area are taken */

/*
 * @code, @far: addresses in the target; @far_size may be 0. The first @taken bytes of the code area
 * are in use. A code area of 48 MiB has room for stubs of all jumps wherever it lies; 100,000 sites
 * take 25 of them. NULL: no memory.
 */
struct kx_jump_space *kx_jump_space_new(uint64_t code, size_t code_size, size_t taken, uint64_t far,
					size_t far_size);
void kx_jump_space_free(struct kx_jump_space *s);

struct kx_jump {
	uint64_t trampoline; /* address in the target */
	uint8_t bytes[KX_JUMP_SIZE];
	unsigned nstubs;
	/* addresses in the code or far area; each gets a 5-byte jump to the trampoline */
	uint64_t stubs[4];
};

/*
 * Finds room for a trampoline of @size bytes and the stubs of a jump at @at (in the target); bit i
 * of @starts: an instruction begins at @at + i. False: there is none.
 */
bool kx_jump_space_take(struct kx_jump_space *s, uint64_t at, uint8_t starts, size_t size,
			struct kx_jump *out);
/* Gives it back; of several the newest first. */
void kx_jump_space_give(struct kx_jump_space *s, const struct kx_jump *j, size_t size);

/* A 5-byte jump from @at to @to; false if that is too far. */
bool kx_jump_make(uint64_t at, uint64_t to, uint8_t code[KX_JUMP_SIZE]);

#endif
