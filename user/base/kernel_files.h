// SPDX-License-Identifier: BSD-2-Clause
/* Numbers that the kernel shows in files of /proc and /sys. */
#ifndef KX_KERNEL_FILES_H
#define KX_KERNEL_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the file @path can be read and contains @text, of 1 to 255 bytes. */
bool kx_file_contains(const char *path, const char *text);

/*
 * The decimal number with which the file @path begins. Errors: open(2)'s; -EINVAL: it begins
 * with none.
 */
int kx_read_number(const char *path, uint64_t *value);

/* perf_event_attr.type of a PMU, such as "uprobe"; -ENOENT: the kernel has none of this name. */
int kx_pmu_type(const char *pmu);

/* Bytes, by a key of /proc/meminfo such as "MemAvailable"; 0 if it is not known. */
uint64_t kx_meminfo_bytes(const char *key);

#endif
