// SPDX-License-Identifier: BSD-2-Clause
/* The programs of ../bpf/sched.bpf.h: which of them this kernel takes. For tracer.c. */
#ifndef KX_SCHED_PROGRAMS_H
#define KX_SCHED_PROGRAMS_H

#include <stdbool.h>

#include "base/err.h"

struct record_bpf;

/* Before the object is loaded: loads what this kernel can take, or nothing if not @wanted. */
void kx_sched_programs_choose(struct record_bpf *skel, bool wanted);
/* Attaches what was loaded. Errors: the kernel's. */
int kx_sched_programs_attach(struct record_bpf *skel, struct kx_err *err);
void kx_sched_programs_detach(struct record_bpf *skel);

#endif
