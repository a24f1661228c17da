// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls_unmeasured.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "calls/open_calls.h"
#include "trace/notes.h"

#define BATCH 256

struct search {
	struct kx_unmeasured *found;
	struct kx_open_calls open; /* queued: number of the entry */
	uint64_t entries;
	uint64_t min;
};

void kx_unmeasured_free(struct kx_unmeasured *u)
{
	free(u->numbers);
	memset(u, 0, sizeof(*u));
}

static int enter(struct search *s, uint32_t func, uint64_t tsc)
{
	int r = kx_open_calls_are_full(&s->open) ? kx_open_calls_grow(&s->open) : 0;

	if (!r)
		kx_open_calls_push(&s->open, func, tsc)->queued = s->entries++;
	return r;
}

static int close_innermost(struct search *s, uint64_t tsc, bool measured)
{
	const struct kx_open_call *call = kx_open_calls_pop(&s->open);
	struct kx_unmeasured *u = s->found;

	if (measured || tsc - call->enter < s->min)
		return 0;
	if (KX_ARRAY_RESERVE(u->numbers, u->room, u->count))
		return -ENOMEM;
	u->numbers[u->count++] = call->queued;
	return 0;
}

static int leave(struct search *s, uint32_t func, uint64_t tsc)
{
	uint32_t ended;
	enum kx_leave how = kx_open_calls_exit(&s->open, func, false, &ended);
	int r = 0;

	for (; ended && !r; ended--)
		r = close_innermost(s, tsc, ended == 1 && kx_leave_is_measured(how));
	return r;
}

static int take_calls(struct search *s, struct kx_call_record *calls, size_t n)
{
	int r = 0;

	kx_open_calls_advance_batch(&s->open, calls, n);
	for (size_t i = 0; i < n && !r; i++)
		r = calls[i].kind == KX_RECORD_ENTRY ? enter(s, calls[i].func, calls[i].tsc)
						     : leave(s, calls[i].func, calls[i].tsc);
	return r;
}

static void take_note(struct search *s, const struct kx_fdr_record *rec)
{
	const uint8_t *body;
	struct kx_note note;
	uint32_t size;

	if (kx_note_find(rec, &body, &size) != KX_NOTE_REPAIRED || !kx_note_read(rec, &note))
		return;
	s->open.added += note.repaired.exits;
	kx_note_release(&note);
}

static int take_record(struct search *s, const struct kx_fdr_record *rec)
{
	uint64_t tsc;

	if (rec->kind == KX_RECORD_BUFFER)
		return 0;
	tsc = kx_open_calls_advance(&s->open, rec->tsc);
	switch (rec->kind) {
	case KX_RECORD_ENTRY:
		return enter(s, rec->func, tsc);
	case KX_RECORD_EXIT:
	case KX_RECORD_TAIL_EXIT:
		return leave(s, rec->func, tsc);
	case KX_RECORD_CUSTOM:
		take_note(s, rec);
		return 0;
	default:
		return 0;
	}
}

static int compare(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

int kx_unmeasured_find(struct kx_fdr_file *f, size_t thread, uint64_t min, struct kx_unmeasured *u)
{
	struct search s = { .found = u, .min = min };
	struct kx_call_record calls[BATCH];
	struct kx_fdr_cursor *cursor = NULL;
	struct kx_fdr_record rec;
	struct kx_err ignored;
	uint32_t index;
	int r = kx_fdr_thread_cursor(f, thread, &cursor), more = 1;

	while (!r && more > 0) {
		size_t n = kx_fdr_next_calls(cursor, calls, BATCH, &index);

		if (n) {
			r = take_calls(&s, calls, n);
			continue;
		}
		more = kx_fdr_next(cursor, &rec, &ignored);
		if (more > 0)
			r = take_record(&s, &rec);
	}
	kx_fdr_cursor_free(cursor);
	kx_open_calls_free(&s.open);
	/* calls end in another order than they begin */
	if (u->count)
		qsort(u->numbers, u->count, sizeof(*u->numbers), compare);
	return r;
}
