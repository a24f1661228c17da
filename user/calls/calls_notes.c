// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls_notes.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "trace/notes.h"

bool kx_calls_pass_note(const struct kx_fdr_record *rec)
{
	static const char *const used[] = {
		"sched", "sample", "loss", "result", "repaired", "thread", "session",
	};
	uint32_t size;

	if (!kx_note_is_ours(rec))
		return false;
	for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++)
		if (kx_note_body(rec, used[i], &size))
			return false;
	return true;
}

/* Replaces a name, which the thread owns; *changed is set, never cleared. */
static int set_text(const char **text, const json_t *json, bool *changed)
{
	const char *value = json_string_value(json);
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
	json_t *note = json_loadb((const char *)body, size, JSON_DISABLE_EOF_CHECK, NULL);
	int r;

	*changed = false;
	r = set_text(&t->name, json_object_get(note, "name"), changed);
	if (!r)
		r = set_text(&t->process, json_object_get(note, "process"), changed);
	t->ns_pid = (int32_t)json_integer_value(json_object_get(note, "ns_pid"));
	t->ns_tid = (int32_t)json_integer_value(json_object_get(note, "ns_tid"));
	json_decref(note);
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
