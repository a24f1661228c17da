// SPDX-License-Identifier: BSD-2-Clause
#include "trace/notes.h"

#include <string.h>

bool kx_note_is_ours(const struct kx_fdr_record *rec)
{
	size_t prefix = strlen(KX_FDR_NOTE_PREFIX);

	return rec->kind == KX_RECORD_CUSTOM && rec->size > prefix &&
	       !memcmp(rec->data, KX_FDR_NOTE_PREFIX, prefix);
}

const uint8_t *kx_note_body(const struct kx_fdr_record *rec, const char *kind, uint32_t *size)
{
	size_t prefix = strlen(KX_FDR_NOTE_PREFIX), n = strlen(kind);

	if (!kx_note_is_ours(rec) || rec->size <= prefix + n + 1 ||
	    memcmp(rec->data + prefix, kind, n) || rec->data[prefix + n] != ' ')
		return NULL;
	*size = rec->size - (uint32_t)(prefix + n + 1);
	return rec->data + prefix + n + 1;
}

json_t *kx_note_json(const struct kx_fdr_record *rec, const char *kind)
{
	uint32_t size;
	const uint8_t *body = kx_note_body(rec, kind, &size);

	/* Version 1 fills payloads up with blanks. */
	return body ? json_loadb((const char *)body, size, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
}

uint64_t kx_note_number(const json_t *note, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(note, key));

	return v > 0 ? (uint64_t)v : 0;
}
