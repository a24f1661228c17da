// SPDX-License-Identifier: BSD-2-Clause
/*
 * The probes of a recording: those of functions in programs and libraries, of system calls and of
 * kernel functions. probe_sets.c has one row for each; everything here is summed over the rows.
 */
#ifndef KX_PROBE_SETS_H
#define KX_PROBE_SETS_H

#include <stddef.h>
#include <stdint.h>

#include "attach/in_process.h"
#include "attach/kernel_attach.h"
#include "attach/probes.h"
#include "base/err.h"
#include "record/bystanders.h"
#include "record/follow.h"
#include "record/notice.h"
#include "select/select.h"
#include "trace/exit_moves.h"
#include "tracer/tracer.h"

/* A module of a process where functions have no probe. */
struct kx_known_gap {
	pid_t pid;
	uint64_t device, inode;
};

struct kx_probe_sets {
	/* To be set before kx_probe_sets_attach; borrowed. */
	struct kx_tracer *tracer;
	const struct kx_selection *sel;
	const struct kx_select_process *procs; /* NULL: every process, now or later */
	size_t nprocs;
	struct kx_follow *follow; /* where processes join; or NULL */
	enum kx_exits exits;	  /* as the user wants them */
	const struct kx_in_process *in_process; /* its functions get no uprobes; or NULL */
	bool apart; /* functions have links of their own: see attach/probe_switches.h */
	size_t starts_out; /* ... which are out at first where more functions than this are selected; 0: none are */
	unsigned nargs; /* argument registers to capture */
	const struct kx_notices *notices;
	struct kx_exit_move_list *moves; /* gets what moves; NULL: nothing is recorded */

	struct kx_bystanders bystanders; /* while attaching, without follow */
	struct kx_probes *user;
	bool exits_moved; /* some have, in some process: see attach/probes.h */
	struct kx_known_gap *gaps; /* that have been named */
	size_t ngaps, gaps_room;
	size_t waiting;	 /* after kx_probe_sets_free: links that stay until a debugger has ended */
	size_t syscalls;		 /* how many are traced */
	struct kx_kernel_probes *kernel; /* NULL: no kernel functions are traced */
};

/*
 * Attaches the probes of all traced functions. Functions that the kernel refuses are left out, each
 * with a notice. Errors: those of kx_probes_attach, kx_syscalls_attach and kx_kernel_attach.
 */
int kx_probe_sets_attach(struct kx_probe_sets *s, struct kx_err *err);

/*
 * Checks that the probes are in the code of these processes, with a notice for each module of a
 * process where some are not, once. Returns the number of functions without a probe that were not known to lack one,
 * summed over the processes.
 */
size_t kx_probe_sets_check(struct kx_probe_sets *s, const struct kx_select_process *procs,
			   size_t nprocs);

/* Functions that have probes, and their probes. */
size_t kx_probe_sets_functions(const struct kx_probe_sets *s);
size_t kx_probe_sets_probes(const struct kx_probe_sets *s);
/*
 * Calls that the kernel did not pass on to their probes; asks the kernel. Without the system calls: they
 * are in kx_sources_missed.
 */
uint64_t kx_probe_sets_missed(const struct kx_probe_sets *s);

/* The mechanisms in use, for people: "uprobe.session, system call tracepoints". */
void kx_probe_sets_mechanisms(const struct kx_probe_sets *s, char *text, size_t size);
/* That of kernel functions; NULL if none are traced. */
const char *kx_probe_sets_kernel_mechanism(const struct kx_probe_sets *s);

/* Detaches all but the system calls' tracepoints: these are a source of the tracer. */
void kx_probe_sets_free(struct kx_probe_sets *s);

#endif
