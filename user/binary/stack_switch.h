// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whether a file, or memory, has code that runs on stacks other than those that its threads were given: coroutine
 * libraries, and code that loads the stack pointer from anything but its own frame. A return probe on two
 * stacks of one thread breaks the program: see bpf/native_stack.bpf.h, which checks each call where the
 * kernel has uprobe sessions (6.13). Before that this is the only protection.
 *
 * Known by what it imports or defines (swapcontext, Boost's jump_fcontext, greenlet's slp_switch), or by its
 * instructions: a few byte patterns (mov, add, lea, xchg, pop; leave where the instruction before sets rbp) find what may
 * write rsp, and only these places are decoded. Restoring rsp after alloca, a variable-length array or an aligned frame
 * is no switch. The code around a place is guessed, so the scan can err in both directions: a false alarm makes exits
 * more expensive, nothing else. Data among the code, as Haskell's compiler puts there, cause such alarms.
 */
#ifndef KX_STACK_SWITCH_H
#define KX_STACK_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/elf_image.h"

/*
 * The function that the file imports or defines to switch stacks; NULL if there is none. Borrowed from @elf.
 */
const char *kx_stack_switch_symbol(struct kx_elf *elf);

/*
 * Whether an instruction among the @size bytes of code at @code loads rsp from another place than its own
 * frame. @offset gets where. A request to end (base/stop_request.h) gives the search up, and nothing is found.
 */
bool kx_stack_switch_in(const uint8_t *code, size_t size, size_t *offset);

/* The same for all code of a file; @addr gets the ELF virtual address. */
bool kx_stack_switch_code(struct kx_elf *elf, uint64_t *addr);

#endif
