// SPDX-License-Identifier: BSD-2-Clause
/*
 * Libraries that the process of an in-process recording loads and unloads while it is recorded,
 * announced by its dynamic linker (attach/dlopen_watch.h). A recording by uprobes alone has them
 * only with --follow and -a; here what was unloaded must be noticed in any case, and a library that
 * is loaded again would lose what uprobes, which belong to the file, would keep.
 *
 * Cost: for each announcement a look at the process's modules (about 1 ms), and for a module with
 * functions to record three or four short stops of the process.
 */
#ifndef KX_RECORDING_LATE_H
#define KX_RECORDING_LATE_H

#include "base/err.h"

struct recording;

/* After the selection: watches the linker. A notice says where that is not possible. Errors:
 * -ENOMEM, -ESRCH, those of kx_uprobe_link. */
int kx_recording_late_watch(struct recording *r, struct kx_err *err);
/* In each pass: records what has come. Errors: -ENOMEM; what fails for one module is a notice. */
int kx_recording_late_poll(struct recording *r, struct kx_err *err);
void kx_recording_late_free(struct recording *r);

#endif
