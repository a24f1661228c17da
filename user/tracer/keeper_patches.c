// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/keeper_patches.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/monotonic.h"
#include "base/proc_stat.h"
#include "tracer/patch_area.h"

#define START_FIELD 22 /* in /proc/PID/stat */
/* How long processes are tried again in one go. */
#define FAMILY_MS 100

#define QUICK_TRIES    5
#define TRIES	       65
#define TRIES_TO_UNMAP 10

/* When the process was started, in ticks; 0: it has ended. */
static unsigned long long start_of(pid_t pid)
{
	char path[32], buffer[KX_PROC_STAT_SIZE];
	unsigned long long start = 0;
	const char *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	p = kx_proc_stat(path, START_FIELD, buffer);
	return p && sscanf(p, "%llu", &start) == 1 ? start : 0;
}

int kx_guarded_patches_add(struct kx_guarded_patches *g, pid_t pid)
{
	const unsigned long long start = start_of(pid);
	struct kx_guarded_patch *grown = reallocarray(g->items, g->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	g->items = grown;
	if (!start)
		return -ESRCH;
	g->items[g->n++] = (struct kx_guarded_patch){ .pid = pid, .start = start };
	return 0;
}

int kx_guarded_patches_share(struct kx_guarded_patches *g, pid_t pid, const struct kx_patch_family *family)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->items[i].pid == pid) {
			g->items[i].family = *family;
			return 0;
		}
	return -ESRCH;
}

void kx_guarded_patches_drop(struct kx_guarded_patches *g, pid_t pid)
{
	for (size_t i = g->n; i--;)
		if (g->items[i].pid == pid)
			g->items[i] = g->items[--g->n];
}

/* Whether it needs another try. */
static bool remains(struct kx_guarded_patch *p)
{
	struct kx_patch_family_removal family = { 0 };
	struct kx_patch_removal removal;
	bool stays, frozen = false;
	int code;

	p->tries++;
	p->next = kx_monotonic_seconds() + (p->tries < QUICK_TRIES ? 0 : p->tries < TRIES ? 1 : 10);
	if (p->family.inode && (kx_patch_family_remove(&p->family, FAMILY_MS, &family, NULL) || family.waiting))
		return true;
	stays = family.stays;
	if (start_of(p->pid) == p->start) {
		code = kx_patch_remove(p->pid, &removal, NULL);
		if (code && code != -ESRCH)
			return true;
		stays |= !code && removal.stays;
		frozen = !code && removal.frozen;
	}
	return frozen || (stays && p->tries < TRIES_TO_UNMAP);
}

size_t kx_guarded_patches_remove(struct kx_guarded_patches *g)
{
	for (size_t i = g->n; i--;) {
		struct kx_guarded_patch *p = &g->items[i];

		/* its children may live on */
		if ((!p->family.inode && start_of(p->pid) != p->start) ||
		    (kx_monotonic_seconds() >= p->next && !remains(p)))
			*p = g->items[--g->n];
	}
	return g->n;
}
