// SPDX-License-Identifier: BSD-2-Clause
#include "record/target_time.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/process_cpu.h"
#include "record/recording_internal.h"

/* Of all CPUs: all but idle time and time that waits for a disk or belongs to other machines. */
static double system_seconds(void)
{
	unsigned long long user = 0, nice = 0, system = 0, idle, wait, irq = 0, softirq = 0;
	FILE *f = fopen("/proc/stat", "re");

	if (f && fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait,
			&irq, &softirq) != 7)
		user = nice = system = irq = softirq = 0;
	if (f)
		fclose(f);
	return (double)(user + nice + system + irq + softirq) / (double)sysconf(_SC_CLK_TCK);
}

/* The process's times; NULL without memory. */
static struct kx_process_time *time_of(struct kx_target_time *t, pid_t pid)
{
	uint32_t index;
	int is_new;

	if (KX_ARRAY_RESERVE(t->times, t->room, t->pids.count))
		return NULL;
	is_new = kx_pair_index(&t->pids, (uint32_t)pid, 0, &index);
	if (is_new < 0)
		return NULL;
	/* those that are there at the start may have waited for children before */
	if (is_new)
		t->times[index] = (struct kx_process_time){ .waited = t->pass ? 0 : -1 };
	return &t->times[index];
}

static void add_process(struct kx_target_time *t, pid_t pid, bool has_children)
{
	double used = kx_process_cpu_seconds(pid), waited;
	struct kx_process_time *p = used < 0 ? NULL : time_of(t, pid);

	if (!p)
		return;
	/* a smaller one is that of another process with the same id */
	if (used < p->used)
		*p = (struct kx_process_time){ 0 };
	t->sum += used - p->used;
	p->used = used;
	p->pass = t->pass;
	waited = has_children ? kx_process_children_seconds(pid) : -1;
	if (waited < 0)
		return;
	if (p->waited >= 0 && waited > p->waited) {
		const double more = waited - p->waited, known = more < t->ended ? more : t->ended;

		t->ended -= known;
		t->sum += more - known;
		t->unseen += more - known;
	}
	p->waited = waited;
}

static void add_followed(void *ctx, struct kx_followed *p)
{
	if (p->alive)
		add_process(ctx, p->pid, p->has_children);
}

static void find_ended(struct kx_target_time *t)
{
	for (size_t i = 0; i < t->pids.count; i++) {
		struct kx_process_time *p = &t->times[i];

		if (p->pass == t->pass)
			continue;
		t->ended += p->used;
		*p = (struct kx_process_time){ .pass = t->pass };
	}
}

void kx_target_time_init(struct kx_target_time *t, const struct recording *r)
{
	memset(t, 0, sizeof(*t));
	for (size_t i = 0; i < r->targets.npids && !r->o->all; i++)
		add_process(t, r->targets.pids[i], r->follow != NULL);
	kx_target_time_seconds(t, r);
	t->sum = 0;
}

double kx_target_time_seconds(struct kx_target_time *t, const struct recording *r)
{
	if (r->o->all)
		return system_seconds();
	t->pass++;
	for (size_t i = 0; i < r->targets.npids; i++)
		add_process(t, r->targets.pids[i], false);
	if (r->follow)
		kx_followed_each((struct kx_followed_table *)kx_follow_table(r->follow), add_followed, t);
	find_ended(t);
	return t->sum;
}

void kx_target_time_free(struct kx_target_time *t)
{
	kx_pair_map_free(&t->pids);
	free(t->times);
	memset(t, 0, sizeof(*t));
}
