// SPDX-License-Identifier: BSD-2-Clause
/* What a process has mapped: the lines of /proc/PID/maps (proc(5)). */
#ifndef KX_MAPPINGS_H
#define KX_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

struct kx_mapping {
	uint64_t start, end; /* run-time addresses */
	uint64_t offset;     /* in the file */
	uint64_t device, inode; /* as the kernel shows them, which is not what stat(2) does everywhere; 0: no file */
	bool writable, executable;
	bool shared; /* what is written there goes into the file */
	/* of a file, newlines as they are, with " (deleted)"; else the kernel's name in brackets, or "" */
	const char *path;
};

/* Code that the kernel maps into each process: vdso, vsyscall, the copies of probed instructions. */
static inline bool kx_mapping_is_kernels(const struct kx_mapping *m)
{
	return !strncmp(m->path, "[v", 2) || !strncmp(m->path, "[uprobes", 8);
}

/*
 * Calls @each for every mapping in order of addresses, until it returns something else than 0, which is then
 * returned. What it gets is valid during the call. Errors: -ESRCH (the process has ended), -ENOMEM, fopen(3)'s.
 */
int kx_mappings_each(pid_t pid, int (*each)(void *ctx, const struct kx_mapping *m), void *ctx);

#endif
