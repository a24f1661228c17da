// SPDX-License-Identifier: BSD-2-Clause
/* Files of the kernel's tracefs and debugfs, whether or not these are mounted. */
#ifndef KX_KERNEL_FS_H
#define KX_KERNEL_FS_H

#include <stdio.h>

/*
 * Opens @path of @fs ("tracefs" or "debugfs") for reading: below its usual mount point, else through
 * a mount that nobody but this process sees and that ends with it. NULL with errno if neither works.
 */
FILE *kx_kernel_fs_open(const char *fs, const char *path);

#endif
