// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls_scan.h"

#include "calls/calls_notes.h"
#include "trace/notes.h"

static void saw_time(struct kx_calls *c, bool *any, uint64_t tsc)
{
	if (!*any || tsc < c->totals.first_tsc)
		c->totals.first_tsc = tsc;
	if (!*any || tsc > c->totals.last_tsc)
		c->totals.last_tsc = tsc;
	*any = true;
}

static void saw_start(struct kx_calls *c, uint32_t thread, uint64_t tsc)
{
	struct kx_thread_facts *facts = &c->facts[thread];

	if (!facts->started)
		facts->start = tsc;
	facts->started = true;
}

static int scan_note(struct kx_calls *c, const struct kx_fdr_record *rec)
{
	struct kx_thread_facts *facts = &c->facts[rec->thread];
	const uint8_t *body;
	struct kx_note note;
	uint32_t size;
	bool changed;

	switch (kx_note_find(rec, &body, &size)) {
	case KX_NOTE_SCHED:
		if (!kx_note_parse(KX_NOTE_SCHED, body, size, rec->tsc, &note))
			return 0;
		c->has_sched = true;
		saw_start(c, rec->thread, note.sched.from);
		return 0;
	case KX_NOTE_SESSION:
		if (!c->session) {
			c->session = body;
			c->session_size = size;
		}
		return 0;
	case KX_NOTE_THREAD:
		if (!facts->note) {
			facts->note = body;
			facts->note_size = size;
		}
		facts->last_note = body;
		facts->last_note_size = size;
		return kx_call_thread_rename(&c->threads[rec->thread], body, size, &changed);
	case KX_NOTE_REPAIRED:
	case KX_NOTE_RESULT:
	case KX_NOTE_CALL_VALUES:
		return 0;
	default:
		saw_start(c, rec->thread, rec->tsc);
		return 0;
	}
}

static int scan_record(struct kx_calls *c, const struct kx_fdr_record *rec)
{
	switch (rec->kind) {
	case KX_RECORD_ENTRY:
	case KX_RECORD_EXIT:
	case KX_RECORD_TAIL_EXIT:
	case KX_RECORD_TYPED:
		saw_start(c, rec->thread, rec->tsc);
		return 0;
	case KX_RECORD_CUSTOM:
		return scan_note(c, rec);
	default:
		return 0;
	}
}

int kx_calls_scan(struct kx_calls *c, struct kx_err *err)
{
	struct kx_fdr_cursor *cursor = NULL;
	struct kx_fdr_record rec;
	uint64_t first, last;
	uint32_t thread;
	bool any = false;
	int r = kx_fdr_file_cursor(c->f, &cursor), more = 1;

	while (!r && more > 0) {
		if (kx_fdr_skip_calls(cursor, &first, &last, &thread)) {
			saw_time(c, &any, first);
			saw_time(c, &any, last);
			saw_start(c, thread, first);
			continue;
		}
		more = kx_fdr_next(cursor, &rec, err);
		if (more <= 0)
			break;
		if (rec.kind != KX_RECORD_BUFFER)
			saw_time(c, &any, rec.tsc);
		r = scan_record(c, &rec);
	}
	kx_fdr_cursor_free(cursor);
	if (more < 0)
		return more;
	return r ? kx_err_set(err, r, "out of memory for the threads of the trace") : 0;
}

