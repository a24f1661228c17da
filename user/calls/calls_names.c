// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls_names.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Replaces a name that the thread owns; *changed is set, never cleared. */
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
