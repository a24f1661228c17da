// SPDX-License-Identifier: BSD-2-Clause
/*
 * Output files that appear only when they are whole: written without a name (O_TMPFILE), or under a
 * temporary one beside the final one where the file system needs that, then renamed. A failed or
 * interrupted run leaves no half-written file and does not damage an older one.
 *
 * A new file is readable by its owner only (0600), who is the user that called sudo, if root does so
 * under sudo. Replacing a file keeps what its owner set: its mode, its owner and group as far as permitted, and
 * a symbolic link to it stays one.
 */
#ifndef KX_OUTPUT_H
#define KX_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct kx_output {
	char *path;	 /* the final name, symbolic links resolved */
	char *temp_path; /* while not kept; NULL after kx_output_keep */
	char *map_path;	 /* kx_output_map_path of the name as given */
	bool nameless;	 /* it has not got that name either (O_TMPFILE) */
	int fd;		 /* of the temporary file; -1 if it could not be created */
};

/*
 * Creates the temporary file beside what @path names. Errors: -EISDIR, -EINVAL (not a regular
 * file), -ELOOP, -ENOMEM, open(2)'s. To be closed in any case.
 */
int kx_output_open(struct kx_output *o, const char *path, struct kx_err *err);
/* Says that @path, which is given with -o, cannot be written for the reason @code (negative errno), and what to do. Returns @code. */
int kx_output_failed(const char *path, int code, struct kx_err *err);
/* Gives the file its final name. Errors: linkat(2)'s, rename(2)'s. */
int kx_output_keep(struct kx_output *o, struct kx_err *err);
/* Closes the file; removes it if it was not kept. */
void kx_output_close(struct kx_output *o);

/* Whether this is root under sudo; then the user that called sudo and owns new files, and its group. */
bool kx_output_sudo_user(uid_t *uid, gid_t *gid);

#define KX_COMPRESSED_SUFFIX ".zst"

/* The length of @path without the suffix of a compressed file, if it has that. */
size_t kx_output_stem(const char *path);
/*
 * The path of the map beside the trace @path, allocated; NULL if there is no memory. A compressed trace
 * has the map that it has when it is decompressed: trace.xray.map for trace.xray.zst.
 */
char *kx_output_map_path(const char *path);

/* Removes the temporary file for @path that process @pid has left behind, if there is one. */
void kx_output_remove_temporary(const char *path, pid_t pid);

#endif
