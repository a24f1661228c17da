// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/patch_texts.h"

struct kx_patch_text kx_patch_text_of(const struct kx_mapping *m)
{
	return (struct kx_patch_text){ m->start, m->end, m->device, m->inode, m->offset };
}

/* The part of @t that @m has and that is the same code; false: there is none. */
static bool meet(const struct kx_patch_text *t, const struct kx_mapping *m, uint64_t *from,
		 uint64_t *to)
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
	int (*each)(void *ctx, uint64_t from, uint64_t to, bool writable);
	void *ctx;
};

static int add_up(void *ctx, const struct kx_mapping *m)
{
	struct search *s = ctx;
	uint64_t from, to;

	for (size_t i = 0; i < s->n; i++)
		if (m->writable == s->writable && meet(&s->texts[i], m, &from, &to))
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

static int pass_on(void *ctx, const struct kx_mapping *m)
{
	struct search *s = ctx;
	uint64_t from, to;
	int code = 0;

	for (size_t i = 0; i < s->n && !code; i++)
		if (meet(&s->texts[i], m, &from, &to))
			code = s->each(s->ctx, from, to, m->writable);
	return code;
}

int kx_patch_texts_each(pid_t pid, const struct kx_patch_text *texts, size_t n,
			int (*each)(void *ctx, uint64_t from, uint64_t to, bool writable),
			void *ctx)
{
	struct search s = { .texts = texts, .n = n, .each = each, .ctx = ctx };

	return kx_mappings_each(pid, pass_on, &s);
}
