// SPDX-License-Identifier: BSD-2-Clause
/*
 * How many processes have a file mapped executable: whom a probe for every process in this file would change. Files are
 * compared by inode number alone: what /proc/PID/maps shows as the device is not always that of stat(2).
 */
#ifndef KX_MAPPED_FILES_H
#define KX_MAPPED_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kx_mapped_file {
	uint64_t inode;
	size_t processes;
	char *path; /* as one of them shows it; NULL without paths */
};

/* All zero at first. */
struct kx_mapped_files {
	bool with_paths;
	struct kx_mapped_file *items; /* once counted: by inode, each file once */
	size_t count, room;
};

/*
 * Adds the files of process @pid, which must not be added twice. Errors: -ENOMEM, -ESRCH (it has ended), and open(2)'s if this
 * user may not look at it.
 */
int kx_mapped_files_add(struct kx_mapped_files *f, pid_t pid);
/* To be called once, after all processes were added. */
void kx_mapped_files_count(struct kx_mapped_files *f);
/* How many of the processes have the file mapped. */
size_t kx_mapped_files_of(const struct kx_mapped_files *f, uint64_t inode);
/* Sorts the items by their processes, the most first; then kx_mapped_files_of must not be used. */
void kx_mapped_files_rank(struct kx_mapped_files *f);
/* Forgets all files. */
void kx_mapped_files_free(struct kx_mapped_files *f);

#endif
