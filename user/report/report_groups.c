// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static int add_group(struct kx_report_groups *g, const struct kx_report_group *item)
{
	struct kx_report_group *new;

	if (KX_ARRAY_RESERVE(g->items, g->room, g->count))
		return -ENOMEM;
	new = &g->items[g->count++];
	*new = *item;
	new->name = new->process = "";
	return 0;
}

/* The group that two numbers identify; @item is what it begins as. */
static int numbered_group(struct kx_report_groups *g, uint32_t a, uint32_t b,
			  const struct kx_report_group *item, uint32_t *index)
{
	int is_new = kx_pair_index(&g->index, a, b, index);

	return is_new > 0 ? add_group(g, item) : is_new;
}

static int set_text(const char **text, const char *value)
{
	char *copy;

	if (!*value || !strcmp(*text, value))
		return 0;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	if (**text)
		free((void *)(uintptr_t)*text);
	*text = copy;
	return 0;
}

static int named_group(struct kx_report_groups *g, const char *name, uint32_t *index)
{
	int r = 0;

	for (*index = 0; *index < g->count; ++*index)
		if (!strcmp(g->items[*index].name, name))
			return 0;
	r = add_group(g, &(struct kx_report_group){ 0 });
	return r ? r : set_text(&g->items[*index].name, name);
}

static int group_of_thread(struct kx_report_groups *g, const struct kx_call_thread *t, uint32_t *index)
{
	const struct kx_report_group item = {
		.pid = t->pid, .tid = g->by == KX_REPORT_BY_THREAD ? t->tid : 0,
	};

	switch (g->by) {
	case KX_REPORT_BY_PROCESS:
		/* only a main thread shows that another process has got the pid */
		return numbered_group(g, t->pid == t->tid ? t->life : 0, (uint32_t)t->pid, &item, index);
	case KX_REPORT_BY_THREAD:
		return numbered_group(g, t->index, t->life, &item, index);
	case KX_REPORT_BY_THREAD_NAME:
		return named_group(g, t->name, index);
	default:
		return 0;
	}
}

/* The main thread's note decides on a process's name; until it comes, those of other threads are used. */
static int name_group(struct kx_report_groups *g, const struct kx_call_thread *t)
{
	struct kx_report_group *item = &g->items[g->current];
	int r;

	if (g->by == KX_REPORT_BY_THREAD) {
		item->ns_id = t->ns_tid;
		r = set_text(&item->name, t->name);
		return r ? r : set_text(&item->process, t->process);
	}
	if (t->ns_pid)
		item->ns_id = t->ns_pid;
	return *item->name && t->tid != t->pid ? 0 : set_text(&item->name, t->process);
}

int kx_report_group_thread(struct kx_report_groups *g, const struct kx_call_thread *t, bool counting)
{
	uint32_t before = g->current;
	int r;

	if (g->by != KX_REPORT_BY_PROCESS && g->by != KX_REPORT_BY_THREAD &&
	    g->by != KX_REPORT_BY_THREAD_NAME)
		return 0;
	r = group_of_thread(g, t, &g->current);
	if (r || !counting)
		return r;
	/* again for a thread that only has a new name */
	if (g->last_thread != t->index + 1 || g->last_life != t->life || g->current != before)
		g->items[g->current].threads++;
	g->last_thread = t->index + 1;
	g->last_life = t->life;
	return g->by == KX_REPORT_BY_THREAD_NAME ? 0 : name_group(g, t);
}

int kx_report_group_function(struct kx_report_groups *g, const struct kx_call *call, uint32_t *number)
{
	const struct kx_report_group cpu = { .cpu = call->cpu };
	int r = 0;

	if (g->by == KX_REPORT_BY_CPU)
		r = numbered_group(g, 0, call->cpu, &cpu, &g->current);
	if (!r)
		r = kx_pair_index(&g->pairs, g->current, call->func, number);
	if (r <= 0)
		return r;
	if (KX_ARRAY_RESERVE(g->pair, g->pairs_room, *number))
		return -ENOMEM;
	g->pair[*number] = (struct kx_pair){ .a = g->current, .b = call->func };
	return 0;
}

void kx_report_groups_free(struct kx_report_groups *g)
{
	for (size_t i = 0; i < g->count; i++) {
		if (*g->items[i].name)
			free((void *)(uintptr_t)g->items[i].name);
		if (*g->items[i].process)
			free((void *)(uintptr_t)g->items[i].process);
	}
	free(g->items);
	free(g->pair);
	kx_pair_map_free(&g->index);
	kx_pair_map_free(&g->pairs);
	memset(g, 0, sizeof(*g));
}
