// SPDX-License-Identifier: BSD-2-Clause
/* What precedes the resources of a Perun profile: the command, the machine, the tracer. */
#ifndef KX_PERUN_HEAD_H
#define KX_PERUN_HEAD_H

#include "exporters/exporter.h"

/*
 * All arguments of the traced command, separated by blanks, since the trace does not say which of them
 * are the workload. "" if the command is not known. Free with free(). NULL without memory.
 */
char *kx_perun_workload(const struct kx_export *x);
/* Opens the profile and writes all members up to the resources. -ENOMEM, or x->out's error. */
int kx_perun_head(const struct kx_export *x, const char *workload);

#endif
