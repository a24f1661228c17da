// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which calls of a binary's imported functions, and which of its system call instructions, pass which constants: found
 * without symbols, in all code of the file. What is not a direct call (the address of the function is taken, or a place
 * where nothing is known of the code around) is a site without an address, so an answer about all sites holds for whatever
 * the module itself can call by that import.
 *
 * Cost: the code of a binary that imports one of the names is read twice, about 2 ms a megabyte; else once, for system
 * calls, a tenth of that.
 */
#ifndef KX_CALL_SITES_H
#define KX_CALL_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "binary/elf_image.h"
#include "plan/decoded_function.h"

#define KX_MAX_CALLED  16 /* names */
#define KX_SYSTEM_CALL KX_MAX_CALLED

struct kx_call_site {
	unsigned name; /* index among the names, or KX_SYSTEM_CALL */
	uint64_t addr; /* ELF virtual address of the call, tail jump or `syscall`; 0: not a direct call */
};

struct kx_call_sites;

/*
 * Sites of the @n imported functions @names, and with @system_calls of `syscall` and `int $0x80`. @elf is borrowed and must
 * outlive the result. Errors: -ENOMEM; -EOPNOTSUPP: the file has no section table, so it isn't known what it imports.
 */
int kx_call_sites_find(struct kx_elf *elf, const char *const *names, size_t n, bool system_calls,
		       struct kx_call_sites **out, struct kx_err *err);
void kx_call_sites_free(struct kx_call_sites *s);
/* In the order of the code; borrowed. */
const struct kx_call_site *kx_call_sites_get(const struct kx_call_sites *s, size_t *n);

#define KX_CALL_NUMBER 6 /* as @arg: the number of a system call */

/*
 * The values that integer argument @arg (0 to 5) may have at @site: returns how many are in @values; 0: not known
 * (kx_decoded_function_constants).
 */
size_t kx_call_sites_argument(const struct kx_call_sites *s, const struct kx_call_site *site, unsigned arg,
			      uint64_t values[KX_MAX_CONSTANTS]);

#endif
