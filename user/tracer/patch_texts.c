// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/patch_texts.h"

struct kx_patch_text kx_patch_text_of(const struct kx_mapping *m)
{
	return (struct kx_patch_text){ m->start, m->end, m->device, m->inode, m->offset };
}

bool kx_patch_text_meets(const struct kx_patch_text *t, const struct kx_mapping *m, uint64_t *from, uint64_t *to)
{
	*from = m->start > t->from ? m->start : t->from;
	*to = m->end < t->to ? m->end : t->to;
	return *from < *to && m->executable && !m->shared && m->inode == t->inode &&
	       m->device == t->device && m->offset - m->start == t->offset - t->from;
}

struct search {
	const struct kx_patch_text *texts;
	size_t n;
	bool writable;
	uint64_t found; /* bytes */
};

static int add_up(void *ctx, const struct kx_mapping *m)
{
	struct search *s = ctx;
	uint64_t from, to;

	for (size_t i = 0; i < s->n; i++)
		if (m->writable == s->writable && kx_patch_text_meets(&s->texts[i], m, &from, &to))
			s->found += to - from;
	return 0;
}

bool kx_patch_texts_are_there(pid_t pid, const struct kx_patch_text *texts, size_t n, bool writable)
{
	struct search s = { .texts = texts, .n = n, .writable = writable };
	uint64_t all = 0;

	for (size_t i = 0; i < n; i++)
		all += texts[i].to - texts[i].from;
	return !kx_mappings_each(pid, add_up, &s) && s.found == all;
}
