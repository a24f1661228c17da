// SPDX-License-Identifier: BSD-2-Clause
/* The custom events that kxray itself writes into traces (see fdr.h), as they are read. */
#ifndef KX_NOTES_H
#define KX_NOTES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/fdr_reader.h"

/* Whether a record is one of them, of any kind. */
bool kx_note_is_ours(const struct kx_fdr_record *rec);
/* Its JSON, not terminated, borrowed from the file; NULL if it is no note of this kind. */
const uint8_t *kx_note_body(const struct kx_fdr_record *rec, const char *kind, uint32_t *size);
/* The same, parsed; NULL also where it cannot be. */
json_t *kx_note_json(const struct kx_fdr_record *rec, const char *kind);
/* A number of a note's; 0 for what is missing or negative. */
uint64_t kx_note_number(const json_t *note, const char *key);

#endif
