// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls_notes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/notes.h"

/* Replaces a name, which the thread owns; *changed is set, never cleared. */
static int set_text(const char **text, const char *value, bool *changed)
{
	char *copy;

	if (!value || !strcmp(value, *text))
		return 0;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	if (**text)
		free((void *)(uintptr_t)*text);
	*text = "";
	if (*copy)
		*text = copy;
	else
		free(copy);
	*changed = true;
	return 0;
}

int kx_call_thread_rename(struct kx_call_thread *t, const uint8_t *body, uint32_t size,
			  bool *changed)
{
	struct kx_note note;
	int r;

	/* A damaged note names nothing. */
	(void)kx_note_parse(KX_NOTE_THREAD, body, size, 0, &note);
	*changed = false;
	r = set_text(&t->name, note.thread.name, changed);
	if (!r)
		r = set_text(&t->process, note.thread.process, changed);
	t->ns_pid = note.thread.ns_pid;
	t->ns_tid = note.thread.ns_tid;
	kx_note_release(&note);
	return r;
}

void kx_call_thread_clear_names(struct kx_call_thread *t)
{
	if (t->name && *t->name)
		free((void *)(uintptr_t)t->name);
	if (t->process && *t->process)
		free((void *)(uintptr_t)t->process);
	t->name = t->process = "";
}
