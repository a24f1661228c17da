// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whether attached probes are in the processes' code. The kernel accepts a probe and yet sets none
 * where the code is mapped writable (a program that patches itself, W|X pages of a protector), and
 * another program can overwrite one. Such functions would seem never to be called.
 *
 * Each probe is one byte, read through /proc/PID/mem page by page: about a microsecond a page.
 */
#ifndef KX_PROBE_CHECK_H
#define KX_PROBE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "attach/probes.h"
#include "binary/modules.h"
#include "select/select.h"

/* Functions of one module in one process that lack their entry probe or one at an exit. */
struct kx_probe_gap {
	pid_t pid;
	const struct kx_module *module;
	const struct kx_function *first; /* of those that lack one */
	size_t functions;		 /* how many lack one */
	size_t all;			 /* how many should have one there */
	bool writable;			 /* the code of the first is mapped writable */
};

/*
 * Checks the probes of @sel in @procs; calls @report for each gap. Returns the number of functions
 * that lack a probe, summed over the processes. What cannot be read (a process that has ended or
 * executed another program) lacks nothing.
 */
size_t kx_probe_check(const struct kx_probes *probes, const struct kx_selection *sel,
		      const struct kx_select_process *procs, size_t nprocs,
		      void (*report)(void *ctx, const struct kx_probe_gap *gap), void *ctx);

#endif
