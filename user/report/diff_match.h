// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which function of one trace is which of another. Ids and addresses differ between recordings and
 * builds, so functions match by module and symbol; then, of those left over, by module and readable
 * name without what compilers add (".isra.0",
 * ".llvm.1234", the hash of a Rust symbol); then by that name alone, if each trace has it once: the
 * program's file has another name. Functions of the same name in one module (static ones) match in
 * the order of their addresses.
 */
#ifndef KX_DIFF_MATCH_H
#define KX_DIFF_MATCH_H

#include <stddef.h>
#include <stdint.h>

#include "report/report.h"
#include "trace/symbolizer.h"

#define KX_DIFF_NONE UINT32_MAX

/* Two functions of the same name, by their numbers in the reports; one of them may be KX_DIFF_NONE.
 */
struct kx_diff_pair {
	uint32_t a, b;
};

/* All functions of both reports; the caller frees *@pairs. Errors: -ENOMEM. */
int kx_diff_match(const struct kx_report *a, struct kx_symbolizer *names_a,
		  const struct kx_report *b, struct kx_symbolizer *names_b,
		  struct kx_diff_pair **pairs, size_t *npairs);

#endif
