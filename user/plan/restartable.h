// SPDX-License-Identifier: BSD-2-Clause
/*
 * Critical sections that the kernel restarts (rseq(2)): a thread that is preempted or gets a signal between a section's first address
 * and its commit goes on at the section's abort handler. Code that is moved out of the section is not restarted, and what it then
 * commits is wrong.
 */
#ifndef KX_RESTARTABLE_H
#define KX_RESTARTABLE_H

#include <stdbool.h>

#include "plan/landing_map.h"

/*
 * Whether the code of @m has an abort handler. Sections are described by data anywhere, or by what the program writes at run time; but
 * before an abort handler there are always the four bytes of the signature with which the thread has registered (kernel/rseq.c,
 * rseq_get_rseq_cs), and on x86-64 that is RSEQ_SIG, 0x53053053 (glibc's sys/rseq.h, librseq, tcmalloc; glibc registers
 * each thread with it). As the same four bytes may be a constant, something must land behind them, or the instruction that librseq or tcmalloc
 * puts them into must stand there. Call when all that lands is marked.
 */
bool kx_restartable_found(const struct kx_landing_map *m);

#endif
