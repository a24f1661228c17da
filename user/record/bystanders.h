// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which files are mapped by processes that nobody asked to trace: a probe for every process in such a file
 * would change these processes, too.
 *
 * Cost: /proc/PID/maps of every process, once for all modules that join the selection together.
 */
#ifndef KX_BYSTANDERS_H
#define KX_BYSTANDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "binary/mapped_files.h"
#include "binary/modules.h"

struct kx_bystanders {
	bool (*is_traced)(void *ctx, pid_t pid);
	void *ctx;
	struct kx_mapped_files files;
	bool known; /* the files are that those of now; false at first, and to have them read again */
	bool blind; /* the processes could not be read, so they may map anything */
};

/*
 * Whether a process that is not traced has @m mapped executable, as far as this user may look. Reads
 * the files if they are not @known. Files are compared as mapped_files.h says.
 */
bool kx_bystanders_map(struct kx_bystanders *b, const struct kx_module *m);
/* How many such processes. */
size_t kx_bystanders_count(struct kx_bystanders *b, const struct kx_module *m);
void kx_bystanders_free(struct kx_bystanders *b);

#endif
