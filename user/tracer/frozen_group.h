// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whether a process is in a control group that is frozen (docker pause, systemctl freeze, a runtime's checkpoint).
 *
 * With cgroup v2 its threads sleep where they would return to their code: a stop by ptrace(2) wakes them for itself, so their code and
 * registers can be changed, but none runs an instruction before it is thawed. /proc shows them asleep (S), as any thread that waits.
 * With version 1 they wait uninterruptibly (D), and do not even stop.
 */
#ifndef KX_FROZEN_GROUP_H
#define KX_FROZEN_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Whether thread @tid is, by its group or one above it. @path, of @size bytes, becomes the folder of the group that is to be thawed;
 * or NULL. False too where the hierarchy cannot be read. Opens some files: about 50 us.
 */
bool kx_frozen_group(pid_t tid, char *path, size_t size);
/* The same with other files in place of /proc/TID/cgroup and /proc/self/mountinfo. */
bool kx_frozen_group_by(const char *groups, const char *mountinfo, char *path, size_t size);

/* 0, or -EBUSY with the sentence that process @pid is in a frozen group. */
int kx_frozen_group_check(pid_t pid, struct kx_err *err);

#endif
