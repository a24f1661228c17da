// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions whose code in a process is not that of the file: patched by the program itself (XRay's run-time patching,
 * hooks, text relocations). The kernel takes a probed instruction from the file: such a function would run the file's
 * instruction in place of its own, and the probe's removal would put back one byte of it, which can crash the program.
 *
 * Cost: the flags of the pages of each module with functions to trace, 8 bytes a page; only pages that the process has
 * changed are read.
 */
#ifndef KX_CHANGED_CODE_H
#define KX_CHANGED_CODE_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/process_probes.h"
#include "base/err.h"
#include "record/notice.h"
#include "select/select.h"

struct kx_module_filter {
	bool (*matches)(void *ctx, const struct kx_module *m);
	void *ctx;
};

/*
 * Takes the functions from index @first on whose code differs in one of @procs out of @sel: they are no longer traced,
 * and lose their plans. One notice for each module of a process. What cannot be read (a process that has ended) does
 * not differ. @apart: modules in which each process gets probes of its own, so that kx_leave_out_of_process looks at
 * them; NULL: there are none.
 */
void kx_leave_out_changed(struct kx_selection *sel, size_t first,
			  const struct kx_select_process *procs, size_t nprocs,
			  const struct kx_module_filter *apart, const struct kx_notices *notices);
/* The same for all functions. Errors: -EOPNOTSUPP (none is left). */
int kx_leave_out_all_changed(struct kx_selection *sel, const struct kx_select_process *procs,
			     size_t nprocs, const struct kx_module_filter *apart,
			     const struct kx_notices *notices, struct kx_err *err);

/*
 * For a process that is about to get links of its own (@pp) in modules that are traced elsewhere already: its changed
 * functions there get no probes in it; in other processes they keep theirs. Errors: -ENOMEM.
 */
int kx_leave_out_of_process(const struct kx_selection *sel, const struct kx_select_process *proc,
			    struct kx_process_probes *pp, const struct kx_notices *notices);

#endif
