// SPDX-License-Identifier: BSD-2-Clause
#include "record/target_time.h"

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

static void add_process(struct kx_target_time *t, pid_t pid)
{
	double used = kx_process_cpu_seconds(pid);
	uint32_t index;
	int is_new;

	if (used < 0 || KX_ARRAY_RESERVE(t->used, t->room, t->pids.count))
		return;
	is_new = kx_pair_index(&t->pids, (uint32_t)pid, 0, &index);
	if (is_new < 0)
		return;
	/* a smaller one is that of another process with the same id */
	if (is_new || used < t->used[index])
		t->used[index] = 0;
	t->sum += used - t->used[index];
	t->used[index] = used;
}

static void add_followed(void *ctx, struct kx_followed *p)
{
	if (p->alive)
		add_process(ctx, p->pid);
}

void kx_target_time_init(struct kx_target_time *t, const struct recording *r)
{
	memset(t, 0, sizeof(*t));
	kx_target_time_seconds(t, r);
	t->sum = 0;
}

double kx_target_time_seconds(struct kx_target_time *t, const struct recording *r)
{
	if (r->o->all)
		return system_seconds();
	for (size_t i = 0; i < r->targets.npids; i++)
		add_process(t, r->targets.pids[i]);
	if (r->follow)
		kx_followed_each((struct kx_followed_table *)kx_follow_table(r->follow), add_followed, t);
	return t->sum;
}

void kx_target_time_free(struct kx_target_time *t)
{
	kx_pair_map_free(&t->pids);
	free(t->used);
	memset(t, 0, sizeof(*t));
}
