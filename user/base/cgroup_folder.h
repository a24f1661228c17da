// SPDX-License-Identifier: BSD-2-Clause
/* Where the files of a process's control group are. */
#ifndef KX_CGROUP_FOLDER_H
#define KX_CGROUP_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define KX_CGROUP_FOLDER_SIZE (2 * PATH_MAX)

/*
 * The folder of the group that @groups, a file like /proc/PID/cgroup, names in a hierarchy: that of cgroup v2 if @controller is NULL, else that of
 * version 1 with this controller alone. *@mount: length of the folder of its root group. False: it has none, or the hierarchy is not mounted.
 */
bool kx_cgroup_folder(const char *groups, const char *mountinfo, const char *controller, char folder[KX_CGROUP_FOLDER_SIZE], size_t *mount);

/* From a group's folder to that of the group above it; false: it is the root's, of @mount bytes. */
bool kx_cgroup_up(char *folder, size_t mount);

#endif
