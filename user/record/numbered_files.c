// SPDX-License-Identifier: BSD-2-Clause
#include "record/numbered_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/output.h"

char *kx_numbered_path(const char *output, unsigned number)
{
	const char *slash = strrchr(output, '/'), *end = output + kx_output_stem(output);
	const char *dot = memrchr(output, '.', (size_t)(end - output));
	char *path;
	int n;

	if (!dot || dot == output || (slash && dot <= slash + 1))
		n = asprintf(&path, "%.*s.%u%s", (int)(end - output), output, number, end);
	else
		n = asprintf(&path, "%.*s.%u%s", (int)(dot - output), output, number, dot);
	return n < 0 ? NULL : path;
}

void kx_numbered_remove(const char *path)
{
	char *map = kx_output_map_path(path);

	unlink(path);
	if (map)
		unlink(map);
	free(map);
}

static void remove_oldest(struct kx_numbered_files *f, const char *output, enum kx_file_cause cause)
{
	size_t i = 0;
	char *path;

	while (f->items[i].cause != cause)
		i++;
	path = kx_numbered_path(output, f->items[i].number);
	if (path)
		kx_numbered_remove(path);
	free(path);
	memmove(f->items + i, f->items + i + 1, (--f->count - i) * sizeof(*f->items));
}

int kx_numbered_add(struct kx_numbered_files *f, const char *output, unsigned number,
		    enum kx_file_cause cause, size_t most)
{
	size_t same = 1;

	if (KX_ARRAY_RESERVE(f->items, f->room, f->count))
		return -ENOMEM;
	for (size_t i = 0; i < f->count; i++)
		same += f->items[i].cause == cause;
	f->items[f->count++] = (struct kx_numbered_file){ number, cause };
	if (most && same > most)
		remove_oldest(f, output, cause);
	return 0;
}

void kx_numbered_free(struct kx_numbered_files *f)
{
	free(f->items);
	memset(f, 0, sizeof(*f));
}
