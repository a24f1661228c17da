// SPDX-License-Identifier: BSD-2-Clause
#include "record/bystanders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "record/targets.h"

static int add_inode(struct kx_bystanders *b, uint64_t inode)
{
	if (KX_ARRAY_RESERVE(b->inodes, b->room, b->count))
		return -ENOMEM;
	b->inodes[b->count++] = inode;
	return 0;
}

/*
 * A process that has ended meanwhile has nothing mapped. One that this user may not look at (another's; the first
 * one of some containers) is taken for one that has only what others have as well.
 */
static int add_process(void *ctx, pid_t pid)
{
	struct kx_bystanders *b = ctx;
	char path[32], *line = NULL;
	uint64_t last = 0;
	size_t size = 0;
	int code = 0;
	FILE *f;

	if (b->is_traced(b->ctx, pid))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f) {
		b->blind |= errno != ENOENT && errno != ESRCH && errno != EACCES && errno != EPERM;
		return 0;
	}
	while (!code && getline(&line, &size, f) > 0) {
		uint64_t inode;
		char perms[5];

		/* the mappings of one file lie together: it counts once */
		if (sscanf(line, "%*x-%*x %4s %*x %*x:%*x %" SCNu64, perms, &inode) == 2 && inode &&
		    perms[2] == 'x' && inode != last)
			code = add_inode(b, last = inode);
	}
	free(line);
	fclose(f);
	return code;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void look(struct kx_bystanders *b)
{
	b->count = 0;
	b->blind = false;
	b->known = true;
	if (kx_each_process(add_process, b)) {
		b->blind = true;
		return;
	}
	if (b->count)
		qsort(b->inodes, b->count, sizeof(*b->inodes), compare);
}

size_t kx_bystanders_count(struct kx_bystanders *b, const struct kx_module *m)
{
	size_t low = 0, high, n = 0;

	if (!b->known)
		look(b);
	for (high = b->count; low < high;) {
		size_t middle = (low + high) / 2;

		if (b->inodes[middle] < m->inode)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + n < b->count && b->inodes[low + n] == m->inode)
		n++;
	return n;
}

bool kx_bystanders_map(struct kx_bystanders *b, const struct kx_module *m)
{
	if (!b->known)
		look(b);
	return b->blind || kx_bystanders_count(b, m);
}

void kx_bystanders_free(struct kx_bystanders *b)
{
	free(b->inodes);
	b->inodes = NULL;
	b->count = b->room = 0;
}
