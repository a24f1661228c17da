// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls_events.h"

#include <errno.h>

#include "trace/notes.h"

struct kx_queued_detail *kx_stream_queue_detailed(struct kx_stream *s, enum kx_queued_kind kind, uint64_t tsc)
{
	struct kx_queued *e = kx_queue_add(&s->queue, kind, tsc, s->cpu);

	return e ? kx_queue_detail(&s->queue, e) : NULL;
}

static int take_loss(struct kx_stream *s, uint64_t tsc, const struct kx_note *note)
{
	struct kx_queued_detail *d = kx_stream_queue_detailed(s, KX_QUEUED_LOSS, tsc);

	if (!d)
		return -ENOMEM;
	d->loss.from = note->loss.from;
	d->loss.to = note->loss.to;
	d->loss.entries = note->loss.entries;
	d->loss.exits = note->loss.exits;
	return 0;
}

static int take_sample(struct kx_stream *s, uint64_t tsc, uint64_t ip)
{
	struct kx_queued_detail *d = kx_stream_queue_detailed(s, KX_QUEUED_SAMPLE, tsc);

	if (!d)
		return -ENOMEM;
	d->ip = ip;
	return 0;
}

static int take_payload(struct kx_stream *s, enum kx_queued_kind kind, uint64_t tsc,
			const struct kx_fdr_record *rec)
{
	struct kx_queued_detail *d = kx_stream_queue_detailed(s, kind, tsc);

	if (!d)
		return -ENOMEM;
	d->payload.data = rec->data;
	d->payload.size = rec->size;
	d->payload.type = rec->event_type;
	return 0;
}

/* A name that has the trace's start as its time but comes later is another thread's: see notes.h. */
static int take_name(struct kx_stream *s, uint64_t tsc, const uint8_t *body, uint32_t size,
		     bool another)
{
	struct kx_queued_detail *d = kx_stream_queue_detailed(s, KX_QUEUED_NAME, tsc);

	if (!d)
		return -ENOMEM;
	d->payload.data = body;
	d->payload.size = size;
	d->payload.another = another;
	return 0;
}

/* A note of numbers. */
static int take_note(struct kx_stream *s, uint64_t tsc, const struct kx_fdr_record *rec)
{
	struct kx_note note;
	bool good = kx_note_read(rec, &note);

	switch (note.kind) {
	case KX_NOTE_REPAIRED:
		s->open.added += note.repaired.exits;
		return 0;
	case KX_NOTE_RESULT:
		s->has_result = good;
		s->result = note.result.value;
		return 0;
	case KX_NOTE_CALL_VALUES:
		s->values.data = note.payload.data;
		s->values.size = good ? (uint32_t)note.payload.size : 0;
		return 0;
	case KX_NOTE_LOSS:
		return good && s->begun ? take_loss(s, tsc, &note) : 0;
	case KX_NOTE_SAMPLE:
		return good && s->begun ? take_sample(s, tsc, note.sample.ip) : 0;
	default:
		return 0;
	}
}

int kx_stream_take_event(struct kx_stream *s, uint64_t tsc, const struct kx_fdr_record *rec)
{
	const uint8_t *body;
	uint32_t size;

	switch (kx_note_find(rec, &body, &size)) {
	case KX_NOTE_THREAD:
		return take_name(s, tsc, body, size, rec->tsc < tsc);
	case KX_NOTE_REPAIRED:
	case KX_NOTE_RESULT:
	case KX_NOTE_CALL_VALUES:
	case KX_NOTE_LOSS:
	case KX_NOTE_SAMPLE:
		return take_note(s, tsc, rec);
	case KX_NOTE_SESSION:
	case KX_NOTE_SCHED:
		return 0;
	case KX_NOTE_NONE:
		return s->begun ? take_payload(s, KX_QUEUED_EVENT, tsc, rec) : 0;
	default:
		return s->begun && s->c->visitor->note ? take_payload(s, KX_QUEUED_NOTE, tsc, rec) : 0;
	}
}
