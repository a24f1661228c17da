// SPDX-License-Identifier: BSD-2-Clause
/*
 * The priority of the thread that reads rings which a process fills itself (--in-process). Such a process makes events forty times as fast as
 * uprobes can, so its threads and the reader compete for the CPUs: with the same priority the reader gets its share late, and what
 * does not fit into the rings meanwhile is lost. It takes no more CPU time with a higher one, only earlier.
 */
#ifndef KX_READER_PRIORITY_H
#define KX_READER_PRIORITY_H

#include <stdbool.h>

#define KX_READER_NICE (-10)

/*
 * Raises the calling thread's to KX_READER_NICE, not that of processes that it starts. Whether it did: not without CAP_SYS_NICE, and a
 * priority that the user has chosen stays.
 */
bool kx_reader_priority_raise(void);
/* After that: takes it back. */
void kx_reader_priority_restore(void);

#endif
