// SPDX-License-Identifier: BSD-2-Clause
/* The programs of bpf/sched.bpf.h: which of them this kernel accepts. For sources.c. */
#ifndef KX_SCHED_PROGRAMS_H
#define KX_SCHED_PROGRAMS_H

struct record_bpf;

/* Before the object is loaded: leaves out the programs that this kernel refuses or does not need.
 */
void kx_sched_programs_choose(struct record_bpf *skel);

#endif
