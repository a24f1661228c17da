// SPDX-License-Identifier: BSD-2-Clause
/*
 * What this kernel's uprobes can do, found by attaching probes to a function of kxray's own: version
 * numbers prove nothing where distributions backport and disable features.
 */
#ifndef KX_UPROBE_TRY_H
#define KX_UPROBE_TRY_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "tracer/uprobe_link.h"

/* Attaches a probe by @m and detaches it. 0, or the kernel's negative errno. */
int kx_mechanism_try(enum kx_mechanism m);

/* The best mechanism that works here. -errno with the reasons of all three if none does. */
int kx_mechanism_best(enum kx_mechanism *out, struct kx_err *err);

/*
 * Whether the pid filter of a multi link selects a process (since 6.10), not a single thread. Where
 * it does not, links are made for all processes and the BPF programs filter. Tried once.
 */
bool kx_multi_filters_process(void);

/* 1 if this kernel turns a probed 5-byte nop into a call, 0 if not, negative if it can't be tried. */
int kx_probe_nop5_optimized(void);

/*
 * Whether a probe on a 5-byte nop harms: the page that such a call goes to is missing in children that the process forks (seen on Linux 6.18), which
 * end by SIGSEGV at their next call of the function. Tried once, on a child. False where nops of 5 bytes are not optimized.
 */
bool kx_probe_nop5_harms(void);

/*
 * Which enum kx_insn_kind (plan/plan.h) this kernel emulates under a probe, 1 << kind each, for struct
 * kx_plan_options. Found without timing: the kernel maps an area into a process before it single-steps there the
 * first time. Tried once, on children; KX_EMULATED_ALWAYS where it cannot be tried.
 */
unsigned kx_probe_emulated(void);

/* Whether the process runs under seccomp; false if that cannot be read. */
bool kx_process_has_seccomp(pid_t pid);

/*
 * Whether return probes work in a process under seccomp: some kernels kill it because the filter
 * forbids the system call that such probes add. Tried once, on a child in strict mode; false also
 * where it cannot be tried.
 */
bool kx_returns_survive_seccomp(void);

/*
 * Whether return probes of that mechanism (-1: the best) are kept to the stacks that threads were started
 * with: only a session's program can decide it for each call.
 */
bool kx_returns_check_stacks(int mechanism);

#endif
