// SPDX-License-Identifier: BSD-2-Clause
/*
 * --in-process --follow: children that the process forks inherit its jumps and the memory that
 * these lead to, and record into the same rings by their own thread ids. One flag switches all of
 * them. A child that executes a program loses all of it.
 *
 * A child has all jumps or none that records: one that was forked before all were written
 * (kx_in_process_leave) gets uprobes, and so does one whose C library does not know its thread's
 * id. The functions that are recorded in process get no uprobes while a process has the jumps. (The
 * kernel would not put any there, as the code is writable.)
 */
#ifndef KX_IN_PROCESS_CHILDREN_H
#define KX_IN_PROCESS_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/in_process.h"
#include "tracer/patch_family.h"

/* Whether the process has inherited what is mapped, or that cannot be found out. */
bool kx_in_process_is_inherited(const struct kx_in_process *p, pid_t pid);
/* Where threads have their id, from the thread pointer on. */
uint32_t kx_in_process_get_tid_offset(const struct kx_in_process *p);

/* Takes the jumps out of a child; the others go on recording. *@stays: see struct kx_patch_removal.
 * Errors: those of kx_patch_remove. */
int kx_in_process_leave(struct kx_in_process *p, pid_t pid, bool *stays, struct kx_err *err);
/*
 * Takes them out of all, in place of kx_in_process_remove: of children whose parent has ended, too.
 * What waits is left to the keeper. @out may be NULL. Errors: those of kx_patch_family_remove.
 */
int kx_in_process_remove_family(struct kx_in_process *p, struct kx_patch_family_removal *out,
				struct kx_err *err);

/* For in_process.c: the rings are mapped, and nothing else yet. Errors: stat(2)'s. */
int kx_in_process_share_family(struct kx_in_process *p, struct kx_err *err);

#endif
