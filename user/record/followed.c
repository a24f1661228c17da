// SPDX-License-Identifier: BSD-2-Clause
#include "record/followed.h"

#include <stdlib.h>

#include "base/monotonic.h"
#include "base/process_cpu.h"

static struct kx_followed **place_of(struct kx_followed_table *t, pid_t pid)
{
	struct kx_followed **p = &t->buckets[(uint32_t)pid & (KX_FOLLOWED_BUCKETS - 1)];

	while (*p && (*p)->pid != pid)
		p = &(*p)->next_in_bucket;
	return p;
}

struct kx_followed *kx_followed_find(const struct kx_followed_table *t, pid_t pid)
{
	struct kx_followed *p = t->buckets[(uint32_t)pid & (KX_FOLLOWED_BUCKETS - 1)];

	while (p && p->pid != pid)
		p = p->next_in_bucket;
	return p;
}

struct kx_followed *kx_followed_get(struct kx_followed_table *t, pid_t pid)
{
	struct kx_followed **p = place_of(t, pid);

	if (!*p) {
		*p = calloc(1, sizeof(**p));
		if (*p)
			(*p)->pid = pid;
	}
	return *p;
}

bool kx_followed_make_dirty(struct kx_followed_table *t, pid_t pid)
{
	struct kx_followed *p = kx_followed_get(t, pid);

	if (!p || p->dirty)
		return p;
	p->dirty = true;
	p->next_dirty = NULL;
	if (t->first_dirty)
		t->last_dirty->next_dirty = p;
	else
		t->first_dirty = p;
	t->last_dirty = p;
	return true;
}

struct kx_followed *kx_followed_take_dirty(struct kx_followed_table *t)
{
	struct kx_followed *p = t->first_dirty;

	if (p) {
		t->first_dirty = p->next_dirty;
		p->dirty = false;
	}
	return p;
}

void kx_followed_drop(struct kx_followed_table *t, pid_t pid)
{
	struct kx_followed **p = place_of(t, pid), *gone = *p;

	if (!gone || gone->alive || gone->dirty || gone->probes)
		return;
	*p = gone->next_in_bucket;
	kx_links_close(&gone->watched.links);
	free(gone);
}

void kx_followed_each(struct kx_followed_table *t,
		      void (*each)(void *ctx, struct kx_followed *p), void *ctx)
{
	for (uint32_t i = 0; i < KX_FOLLOWED_BUCKETS; i++) {
		for (struct kx_followed *p = t->buckets[i], *next; p; p = next) {
			next = p->next_in_bucket;
			each(ctx, p);
		}
	}
}

void kx_followed_free(struct kx_followed_table *t)
{
	for (uint32_t i = 0; i < KX_FOLLOWED_BUCKETS; i++) {
		for (struct kx_followed *p = t->buckets[i], *next; p; p = next) {
			next = p->next_in_bucket;
			kx_links_close(&p->watched.links);
			free(p);
		}
		t->buckets[i] = NULL;
	}
	t->first_dirty = NULL;
}

static uint64_t monotonic_ns(void)
{
	return (uint64_t)(kx_monotonic_seconds() * 1e9);
}

void kx_followed_has_probes(struct kx_followed *p, struct kx_follow_result *r)
{
	const uint64_t now = monotonic_ns();
	double used = p->forked ? kx_process_cpu_seconds(p->pid) : 0;
	uint64_t ns;

	if (used > 0)
		r->uncounted_seconds += used;
	p->forked = 0;
	if (!p->since)
		return;
	ns = now > p->since ? now - p->since : 0;
	p->since = 0;
	r->joined++;
	r->untraced_ns += ns;
	if (ns > r->untraced_max_ns)
		r->untraced_max_ns = ns;
}

void kx_followed_has_ended(struct kx_followed *p, struct kx_follow_result *r)
{
	const uint64_t now = monotonic_ns();

	if (p->forked && now > p->forked)
		r->uncounted_lives += (double)(now - p->forked) * 1e-9;
	p->forked = 0;
}
