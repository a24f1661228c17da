// SPDX-License-Identifier: BSD-2-Clause
#include "record/bystanders.h"

#include <errno.h>

#include "tracer/each_process.h"

/*
 * A process that has ended meanwhile has nothing mapped. One that this user may not look at (another's; the first
 * one of some containers) is taken for one that has only what others have as well.
 */
static int add_process(void *ctx, pid_t pid)
{
	struct kx_bystanders *b = ctx;
	int code;

	if (b->is_traced(b->ctx, pid))
		return 0;
	code = kx_mapped_files_add(&b->files, pid);
	b->blind |= code && code != -ENOMEM && code != -ESRCH && code != -EACCES && code != -EPERM;
	return code == -ENOMEM ? code : 0;
}

static void look(struct kx_bystanders *b)
{
	kx_mapped_files_free(&b->files);
	b->blind = false;
	b->known = true;
	b->blind |= kx_each_process(add_process, b) != 0;
	kx_mapped_files_count(&b->files);
}

size_t kx_bystanders_count(struct kx_bystanders *b, const struct kx_module *m)
{
	if (!b->known)
		look(b);
	return kx_mapped_files_of(&b->files, m->inode);
}

bool kx_bystanders_map(struct kx_bystanders *b, const struct kx_module *m)
{
	if (!b->known)
		look(b);
	return b->blind || kx_bystanders_count(b, m);
}

void kx_bystanders_free(struct kx_bystanders *b)
{
	kx_mapped_files_free(&b->files);
}
