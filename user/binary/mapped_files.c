// SPDX-License-Identifier: BSD-2-Clause
#include "binary/mapped_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "binary/mappings.h"

struct listing {
	struct kx_mapped_files *files;
	size_t first; /* of this process */
};

static int list_mapping(void *ctx, const struct kx_mapping *m)
{
	struct listing *l = ctx;
	struct kx_mapped_files *f = l->files;
	char *path = NULL;

	if (!m->inode || !m->executable)
		return 0;
	for (size_t i = l->first; i < f->count; i++)
		if (f->items[i].inode == m->inode)
			return 0;
	if (KX_ARRAY_RESERVE(f->items, f->room, f->count) ||
	    (f->with_paths && !(path = strdup(m->path))))
		return -ENOMEM;
	f->items[f->count++] =
		(struct kx_mapped_file){ .inode = m->inode, .processes = 1, .path = path };
	return 0;
}

int kx_mapped_files_add(struct kx_mapped_files *f, pid_t pid)
{
	struct listing l = { .files = f, .first = f->count };

	return kx_mappings_each(pid, list_mapping, &l);
}

static int by_inode(const void *a, const void *b)
{
	const struct kx_mapped_file *x = a, *y = b;

	return (x->inode > y->inode) - (x->inode < y->inode);
}

void kx_mapped_files_count(struct kx_mapped_files *f)
{
	size_t n = 0;

	if (f->count)
		qsort(f->items, f->count, sizeof(*f->items), by_inode);
	for (size_t i = 0; i < f->count; i++) {
		if (!n || f->items[n - 1].inode != f->items[i].inode) {
			f->items[n++] = f->items[i];
			continue;
		}
		f->items[n - 1].processes++;
		free(f->items[i].path);
	}
	f->count = n;
}

size_t kx_mapped_files_of(const struct kx_mapped_files *f, uint64_t inode)
{
	const struct kx_mapped_file key = { .inode = inode }, *found = NULL;

	if (f->count)
		found = bsearch(&key, f->items, f->count, sizeof(key), by_inode);
	return found ? found->processes : 0;
}

static int by_processes(const void *a, const void *b)
{
	const struct kx_mapped_file *x = a, *y = b;

	if (x->processes != y->processes)
		return x->processes < y->processes ? 1 : -1;
	return x->path && y->path ? strcmp(x->path, y->path) : 0;
}

void kx_mapped_files_rank(struct kx_mapped_files *f)
{
	if (f->count)
		qsort(f->items, f->count, sizeof(*f->items), by_processes);
}

void kx_mapped_files_free(struct kx_mapped_files *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->items[i].path);
	free(f->items);
	f->items = NULL;
	f->count = f->room = 0;
}
