// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/common/instant.h"

#include <stdio.h>
#include <string.h>

#include "trace/notes.h"

bool kx_instant_read(struct kx_instant *out, const struct kx_call_thread *t,
		     const struct kx_fdr_record *rec)
{
	const char *name = memchr(rec->data, ':', rec->size), *blank;
	const uint8_t *body;
	uint32_t size;
	size_t n;

	kx_note_find(rec, &body, &size);
	if (!body || !name)
		return false;
	blank = memchr(name, ' ', rec->size - (size_t)((const uint8_t *)name - rec->data));
	n = (size_t)(blank - ++name);
	if (n >= sizeof(out->name))
		return false;
	memcpy(out->name, name, n);
	out->name[n] = 0;
	out->func = t->depth ? t->stack[t->depth - 1].func : 0;
	/* version 1 pads payloads with blanks */
	out->values = json_loadb((const char *)body, size, JSON_DISABLE_EOF_CHECK, NULL);
	if (json_is_object(out->values)) {
		json_object_del(out->values, "function"); /* an id; exporters write the name of func */
		return true;
	}
	json_decref(out->values);
	return false;
}

void kx_instant_free(struct kx_instant *i)
{
	json_decref(i->values);
}

const char *kx_instant_value(const json_t *value, char text[KX_INSTANT_VALUE])
{
	text[0] = 0;
	if (json_is_string(value))
		snprintf(text, KX_INSTANT_VALUE, "%s", json_string_value(value));
	else if (json_is_integer(value))
		snprintf(text, KX_INSTANT_VALUE, "%lld", (long long)json_integer_value(value));
	return text;
}
