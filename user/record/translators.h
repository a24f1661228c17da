// SPDX-License-Identifier: BSD-2-Clause
/* Processes under a translator (binary/translator.h) beside or in a recording: a probe that they map kills them. */
#ifndef KX_TRANSLATORS_H
#define KX_TRANSLATORS_H

#include <stdbool.h>
#include <sys/types.h>

#include "attach/probes.h"
#include "base/err.h"
#include "select/select.h"

/*
 * Before probes for every process are attached: errors with -EOPNOTSUPP if one of @procs, all processes, runs under a translator and has a file
 * mapped that would get some: one of selected functions, or a dynamic linker. @procs NULL: they are found by their executable files.
 */
int kx_translators_check(const struct kx_selection *sel, const struct kx_select_process *procs, size_t nprocs, struct kx_err *err);

/*
 * Whether process @pid, which has just become a translator, may map a file whose probes are for every process: a program that its command line
 * names, or a library. @own_probes: such files are mapped by traced processes only, and so it may not be any library but one of the system's.
 */
bool kx_translators_may_map(const struct kx_probes *probes, const struct kx_selection *sel, bool own_probes, pid_t pid);

/* Why the recording ends: process @pid, which is traced or not, has become one. Returns -EOPNOTSUPP. */
int kx_translators_end(pid_t pid, const char *translator, bool traced, struct kx_err *err);

#endif
