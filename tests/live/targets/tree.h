// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared by the programs of the process tree: each process counts its own calls and, at its end,
 * appends one line {"pid":P,"index":I,"calls":{NAME:COUNT,...}} to the log.
 */
#ifndef TREE_H
#define TREE_H

#include <fcntl.h>

#include "target.h"

enum tree_function {
	TREE_LEAF,
	TREE_OUTER,
	TREE_INNER,
	TREE_FORK,
	TREE_THREAD,
	CHILD_WORK,
	CHILD_LEAF,
	PLUG_WORK,
	PLUG_LEAF,
	TREE_FUNCTIONS,
};

static const char *const tree_names[TREE_FUNCTIONS] = {
	"tree_leaf",  "tree_outer", "tree_inner", "tree_fork", "tree_thread",
	"child_work", "child_leaf", "plug_work",  "plug_leaf",
};

static long tree_calls[TREE_FUNCTIONS];

static inline void count_call(enum tree_function f)
{
	__atomic_fetch_add(&tree_calls[f], 1, __ATOMIC_RELAXED);
}

/* A single write, so that lines of several processes do not mix. */
static inline void append_calls(const char *path, int index)
{
	char line[1024];
	int n = snprintf(line, sizeof(line), "{\"pid\":%d,\"index\":%d,\"calls\":{", (int)getpid(),
			 index);
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644), first = 1;

	for (int f = 0; f < TREE_FUNCTIONS; f++) {
		if (!tree_calls[f])
			continue;
		n += snprintf(line + n, sizeof(line) - n, "%s\"%s\":%ld", first ? "" : ",",
			      tree_names[f], tree_calls[f]);
		first = 0;
	}
	n += snprintf(line + n, sizeof(line) - n, "}}\n");
	if (fd < 0 || write(fd, line, n) != n)
		_exit(9);
	close(fd);
}

/* The counts as one argument, for a program executed by the same process. */
static inline void pack_calls(const long *calls, char *text, size_t size)
{
	int n = 0;

	for (int f = 0; f < TREE_FUNCTIONS; f++)
		n += snprintf(text + n, size - n, "%ld ", calls[f]);
}

static inline void unpack_calls(const char *text)
{
	char *end;

	for (int f = 0; f < TREE_FUNCTIONS; f++, text = end)
		tree_calls[f] = strtol(text, &end, 10);
}

#endif
