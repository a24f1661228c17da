// SPDX-License-Identifier: BSD-2-Clause
/* Where the control groups are mounted. */
#ifndef KX_CGROUP_MOUNT_H
#define KX_CGROUP_MOUNT_H

#include <limits.h>

/*
 * The first mount of a hierarchy in @mountinfo, a file like /proc/self/mountinfo: that of cgroup v2 if @controller is NULL, else
 * that of version 1 which has this controller. Errors: -ENODEV (there is none), fopen(3)'s.
 */
int kx_cgroup_mount(const char *mountinfo, const char *controller, char mount[PATH_MAX]);

#endif
