// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_off.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of an open call: the thread's clock when it began, and its callees' ticks off the CPU. */
struct mark {
	struct kx_off_cpu begun;
	uint64_t callees;
};

struct kx_off_thread {
	struct kx_off_cpu clock;
	struct mark *marks;
	uint32_t room;
};

void kx_off_table_free(struct kx_off_table *t)
{
	free(t->items);
	t->items = NULL;
	t->room = 0;
}

struct kx_off_times kx_off_get(const struct kx_off_table *t, uint32_t function)
{
	return function < t->room ? t->items[function] : (struct kx_off_times){ 0 };
}

static struct kx_off_times *at(struct kx_off_table *t, uint32_t function)
{
	uint32_t room = t->room ? t->room : 256;
	struct kx_off_times *items;

	if (function < t->room)
		return &t->items[function];
	while (room <= function)
		room *= 2;
	items = reallocarray(t->items, room, sizeof(*items));
	if (!items)
		return NULL;
	memset(items + t->room, 0, (room - t->room) * sizeof(*items));
	t->items = items;
	t->room = room;
	return &items[function];
}

struct kx_off_thread *kx_off_thread_new(uint32_t depth)
{
	struct kx_off_thread *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	/* calls that are open already began when the clock was 0 */
	t->room = depth < 16 ? 16 : depth;
	t->marks = calloc(t->room, sizeof(*t->marks));
	if (t->marks)
		return t;
	free(t);
	return NULL;
}

void kx_off_thread_free(struct kx_off_thread *t)
{
	if (!t)
		return;
	free(t->marks);
	free(t);
}

void kx_off_add(struct kx_off_thread *t, const struct kx_sched_interval *i)
{
	kx_off_cpu_add(&t->clock, i);
}

int kx_off_enter(struct kx_off_thread *t, uint32_t depth)
{
	if (depth >= t->room) {
		uint32_t room = t->room * 2 > depth ? t->room * 2 : depth + 1;
		struct mark *marks = reallocarray(t->marks, room, sizeof(*marks));

		if (!marks)
			return -ENOMEM;
		t->marks = marks;
		t->room = room;
	}
	t->marks[depth] = (struct mark){ .begun = t->clock };
	return 0;
}

int kx_off_leave(struct kx_off_table *table, struct kx_off_thread *t, const struct kx_off_call *call)
{
	const struct mark *mark = &t->marks[call->depth];
	struct kx_off_times *f;
	struct kx_off_cpu d;
	uint64_t self;

	if (!call->measured) {
		if (call->depth)
			t->marks[call->depth - 1].callees += mark->callees;
		return 0;
	}
	f = at(table, call->function);
	if (!f)
		return -ENOMEM;
	d = kx_sched_since(&t->clock, &mark->begun, call->took);
	self = d.off > mark->callees ? d.off - mark->callees : 0;
	f->self_off += self < call->self ? self : call->self;
	if (call->outermost) {
		f->off += d.off;
		f->wait += d.wait;
	}
	if (call->depth)
		t->marks[call->depth - 1].callees += d.off;
	return 0;
}
