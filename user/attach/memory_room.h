// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory that probes and jumps cost a process: it gets copies of its own of the pages of code that they change, and the kernel charges them to its
 * control group. Where that has no room the kernel kills a process of the group, which would have lived without kxray.
 */
#ifndef KX_MEMORY_ROOM_H
#define KX_MEMORY_ROOM_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "select/select.h"

/* Bytes of the pages that the probes of the traced functions of @sel change, in a process that has them all; about, of functions without known exits. */
uint64_t kx_changed_pages(const struct kx_selection *sel);

/*
 * For each of @procs: 0, or -ENOMEM if its control group has no room for @bytes more for each of them that is in this group. Those without a process
 * are passed over.
 */
int kx_memory_room_check_all(const struct kx_select_process *procs, size_t n, uint64_t bytes, struct kx_err *err);

/*
 * 0, or -ENOMEM with the sentence that the control group of process @pid, or one above it, has no room for @bytes more: what it may use less what it uses
 * and the kernel cannot take back. 0 too where that cannot be read, and with swap space, in which what is used finds room.
 */
int kx_memory_room_check(pid_t pid, uint64_t bytes, struct kx_err *err);
/* The same with other files in place of /proc/PID/cgroup and /proc/self/mountinfo, swap or not. */
int kx_memory_room_check_by(pid_t pid, const char *groups, const char *mountinfo, uint64_t bytes, struct kx_err *err);

#endif
