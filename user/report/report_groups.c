// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *room_for(void *items, size_t index, size_t *room, size_t size)
{
	size_t n = *room ? *room * 2 : 64;
	void *grown;

	if (index < *room)
		return items;
	grown = reallocarray(items, n, size);
	if (grown)
		*room = n;
	return grown;
}

static bool is_last(const struct kx_report_processes *p, const struct kx_call_thread *t)
{
	return p->any && p->thread == t->index && p->life == t->life;
}

static int process_of(struct kx_report_processes *p, const struct kx_call_thread *t, uint32_t *index)
{
	/* only a main thread shows that another process has got the pid */
	uint32_t life = t->pid == t->tid ? t->life : 0;
	struct kx_report_process *items;
	int is_new;

	if (is_last(p, t)) {
		*index = p->process;
		return 0;
	}
	is_new = kx_pair_index(&p->index, life, (uint32_t)t->pid, index);
	if (is_new < 0)
		return is_new;
	if (is_new) {
		items = room_for(p->items, *index, &p->room, sizeof(*items));
		if (!items)
			return -ENOMEM;
		p->items = items;
		items[*index] = (struct kx_report_process){ .pid = t->pid, .name = "" };
	}
	p->any = true;
	p->thread = t->index;
	p->life = t->life;
	p->process = *index;
	return 0;
}

int kx_report_process_function(struct kx_report_processes *p, const struct kx_call_thread *t,
			       uint32_t func, uint32_t *number)
{
	struct kx_pair *pair;
	uint32_t process;
	int r = process_of(p, t, &process);

	if (!r)
		r = kx_pair_index(&p->pairs, process, func, number);
	if (r <= 0)
		return r;
	pair = room_for(p->pair, *number, &p->pairs_room, sizeof(*pair));
	if (!pair)
		return -ENOMEM;
	p->pair = pair;
	pair[*number] = (struct kx_pair){ .a = process, .b = func };
	return 0;
}

static void free_name(struct kx_report_process *item)
{
	if (*item->name)
		free((void *)(uintptr_t)item->name);
	item->name = "";
}

/* The main thread's note decides; until it comes, those of other threads are used. */
int kx_report_process_thread(struct kx_report_processes *p, const struct kx_call_thread *t)
{
	struct kx_report_process *item;
	bool known = is_last(p, t);
	uint32_t index;
	int r = process_of(p, t, &index);
	char *copy;

	if (r)
		return r;
	item = &p->items[index];
	item->threads += !known;
	if (t->ns_pid)
		item->ns_pid = t->ns_pid;
	if (!*t->process || (*item->name && t->tid != t->pid))
		return 0;
	copy = strdup(t->process);
	if (!copy)
		return -ENOMEM;
	free_name(item);
	item->name = copy;
	return 0;
}

void kx_report_processes_free(struct kx_report_processes *p)
{
	for (size_t i = 0; i < p->index.count && i < p->room; i++)
		free_name(&p->items[i]);
	free(p->items);
	free(p->pair);
	kx_pair_map_free(&p->index);
	kx_pair_map_free(&p->pairs);
	memset(p, 0, sizeof(*p));
}
