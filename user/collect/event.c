// SPDX-License-Identifier: BSD-2-Clause
#include "collect/event.h"

#include <string.h>

static void sample_note(struct kx_note *note, const struct kx_event *ev, const uint64_t *payload,
			uint32_t inside)
{
	(void)payload;
	(void)inside;
	note->kind = KX_NOTE_SAMPLE;
	note->sample.ip = ev->sp;
}

static const struct kx_note_layout fault_layout = {
	"fault",
	{ { "address", KX_NOTE_ADDRESS },
	  { "ip", KX_NOTE_ADDRESS },
	  { "write", KX_NOTE_COUNT },
	  { "execute", KX_NOTE_COUNT },
	  { "kernel", KX_NOTE_COUNT },
	  { "function", KX_NOTE_COUNT } },
};

static void fault_note(struct kx_note *note, const struct kx_event *ev, const uint64_t *payload,
		       uint32_t inside)
{
	const uint64_t values[KX_NOTE_VALUES] = { ev->sp,
						  payload ? payload[0] : 0,
						  (ev->func & KX_FAULT_WRITE) != 0,
						  (ev->func & KX_FAULT_EXEC) != 0,
						  (ev->func & KX_FAULT_USER) == 0,
						  inside };

	note->kind = KX_NOTE_INSTANT;
	note->layout = &fault_layout;
	memcpy(note->values, values, sizeof(values));
}

static const struct kx_note_layout budget_layout = {
	"budget",
	{ { "function", KX_NOTE_COUNT }, { "one_in", KX_NOTE_COUNT }, { "calls", KX_NOTE_COUNT } },
};

static void budget_note(struct kx_note *note, const struct kx_event *ev, const uint64_t *payload,
			uint32_t inside)
{
	(void)inside;
	note->kind = KX_NOTE_INSTANT;
	note->layout = &budget_layout;
	note->values[0] = ev->func;
	note->values[1] = payload ? payload[0] : 0;
	note->values[2] = payload ? payload[1] : 0;
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
	[KX_EVENT_FAULT] = { .words = 1, .note = fault_note },
	[KX_EVENT_BUDGET] = { .words = 2, .note = budget_note },
};
