// SPDX-License-Identifier: BSD-2-Clause
#include "trace/session_processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"

static int by_pid(const void *a, const void *b)
{
	const struct kx_session_process *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

int kx_session_processes_init(struct kx_session_processes *p, const json_t *session)
{
	const json_t *list = json_object_get(session, "processes"), *process;
	size_t i;

	memset(p, 0, sizeof(*p));
	p->items = calloc(json_array_size(list) + 1, sizeof(*p->items));
	if (!p->items)
		return -ENOMEM;
	json_array_foreach (list, i, process)
		p->items[p->count++] = (struct kx_session_process){
			.pid = (int32_t)json_integer_value(json_object_get(process, "pid")),
			.order = (uint32_t)i,
			.json = process,
		};
	qsort(p->items, p->count, sizeof(*p->items), by_pid);
	return 0;
}

void kx_session_processes_free(struct kx_session_processes *p)
{
	free(p->items);
	memset(p, 0, sizeof(*p));
}

const json_t *kx_session_process(const struct kx_session_processes *p, int32_t pid)
{
	const size_t end = KX_COUNT_LEADING(p->count, i, p->items[i].pid <= pid);

	return end && p->items[end - 1].pid == pid ? p->items[end - 1].json : NULL;
}
