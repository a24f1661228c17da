// SPDX-License-Identifier: BSD-2-Clause
#include "record/bystanders.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "binary/mappings.h"
#include "record/targets.h"

static int add_inode(struct kx_bystanders *b, uint64_t inode)
{
	if (KX_ARRAY_RESERVE(b->inodes, b->room, b->count))
		return -ENOMEM;
	b->inodes[b->count++] = inode;
	return 0;
}

struct listing {
	struct kx_bystanders *b;
	uint64_t last; /* the mappings of one file lie together: it counts once */
};

static int list_mapping(void *ctx, const struct kx_mapping *m)
{
	struct listing *l = ctx;

	if (!m->inode || !m->executable || m->inode == l->last)
		return 0;
	l->last = m->inode;
	return add_inode(l->b, m->inode);
}

/*
 * A process that has ended meanwhile has nothing mapped. One that this user may not look at (another's; the first
 * one of some containers) is taken for one that has only what others have as well.
 */
static int add_process(void *ctx, pid_t pid)
{
	struct listing l = { .b = ctx };
	int code;

	if (l.b->is_traced(l.b->ctx, pid))
		return 0;
	code = kx_mappings_each(pid, list_mapping, &l);
	l.b->blind |= code && code != -ENOMEM && code != -ESRCH && code != -EACCES && code != -EPERM;
	return code == -ENOMEM ? code : 0;
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
