// SPDX-License-Identifier: BSD-2-Clause
/* The numbered files of one session (dumps, parts of a rotated trace), and which of them stay. */
#ifndef KX_NUMBERED_FILES_H
#define KX_NUMBERED_FILES_H

#include <stddef.h>

/* File @number of "trace.xray": "trace.3.xray", or "trace.3.xray.zst" of "trace.xray.zst". Free with free(). NULL on -ENOMEM. */
char *kx_numbered_path(const char *output, unsigned number);
/* Removes a trace and its map. */
void kx_numbered_remove(const char *path);

/*
 * Why a file was written. Each cause has its own budget, so that files on request never evict what a
 * trigger caught: that cannot be had again.
 */
enum kx_file_cause {
	KX_FILE_CAUGHT,	   /* by a trigger, a crash, the end of a process */
	KX_FILE_REQUESTED, /* SIGUSR1, the end of the recording, a part of a rotated trace */
	KX_FILE_CAUSES,
};

/* All zero: no file. */
struct kx_numbered_files {
	struct kx_numbered_file {
		unsigned number;
		enum kx_file_cause cause;
	} *items; /* those that stay, oldest first */
	size_t count, room;
};

/*
 * File @number was written. The newest @most of its cause stay (0: all); the path of the oldest one
 * beyond them is removed with its map. Errors: -ENOMEM: nothing is removed.
 */
int kx_numbered_add(struct kx_numbered_files *f, const char *output, unsigned number,
		    enum kx_file_cause cause, size_t most);
void kx_numbered_free(struct kx_numbered_files *f);

#endif
