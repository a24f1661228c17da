// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the kernel does with a uprobe on an instruction: refuses it, emulates the
 * instruction, turns it into a call, or runs it single-stepped.
 *
 * Source: the rules of Linux arch/x86/kernel/uprobes.c (opcode tables, prefixes,
 * branch_setup_xol_ops, push_setup_xol_ops, can_optimize), the same in 4.1 to 6.18
 * but for the nop5, which 6.18 has.
 */
#ifndef KX_PROBE_COST_H
#define KX_PROBE_COST_H

#include <stdbool.h>

#include "plan/decode.h"
#include "plan/plan.h"

/*
 * Cost of a probe on @insn; @kernel: what it emulates and optimizes, NULL as always. False if the kernel refuses to put one there, or would
 * run the instruction wrongly.
 */
bool kx_probe_cost(const struct kx_insn *insn, const struct kx_plan_options *kernel,
		   enum kx_cost *cost);

/* The kind of @insn among those that kernels emulate; KX_INSN_KINDS if it is none of them. */
enum kx_insn_kind kx_insn_kind(const struct kx_insn *insn);

/* The 5-byte nop that newer kernels overwrite with a call. */
bool kx_insn_is_nop5(const struct kx_insn *insn);

#endif
