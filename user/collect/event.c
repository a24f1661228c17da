// SPDX-License-Identifier: BSD-2-Clause
#include "collect/event.h"

static void sample_note(struct kx_note *note, const struct kx_event *ev, const uint64_t *payload,
			uint32_t inside)
{
	(void)payload;
	(void)inside;
	note->kind = KX_NOTE_SAMPLE;
	note->sample.ip = ev->sp;
}

const struct kx_event_type kx_event_types[KX_EVENT_KINDS] = {
	[KX_EVENT_PAD] = { 0 },
	[KX_EVENT_ENTRY] = { .words = KX_MAX_ARGS },
	[KX_EVENT_EXIT] = { .words = 1 },
	[KX_EVENT_TAIL_EXIT] = { 0 },
	[KX_EVENT_MIGRATE] = { .metadata = true },
	[KX_EVENT_THREAD_EXIT] = { .words = 2, .metadata = true, .lifecycle = true },
	[KX_EVENT_THREAD_NAME] = { .words = 2, .metadata = true, .lifecycle = true },
	[KX_EVENT_SAMPLE] = { .note = sample_note },
	[KX_EVENT_THREAD_NEW] = { .words = 3, .metadata = true, .lifecycle = true },
	[KX_EVENT_SCHED_OUT] = { 0 },
	[KX_EVENT_SCHED_IN] = { 0 },
	[KX_EVENT_WAKE] = { 0 },
	[KX_EVENT_UNWIND] = { 0 },
	[KX_EVENT_LOSS] = { .words = 3 },
};
