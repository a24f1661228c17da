// SPDX-License-Identifier: BSD-2-Clause
/* Untrusted text (names of files, symbols, threads) as JSON: jansson accepts valid UTF-8 only. */
#ifndef KX_JSON_TEXT_H
#define KX_JSON_TEXT_H

#include <jansson.h>
#include <stddef.h>

/*
 * "schema" of each JSON object that a command prints, and of each element where it prints an array.
 * It is raised when a field is removed or means something else; new fields do not raise it.
 * kxray-json(7) has all fields.
 */
#define KX_JSON_SCHEMA	    1
#define KX_JSON_SCHEMA_TEXT "\"schema\":1"

/*
 * The first @max bytes of @text (NULL: ""), without a character that is cut in two at the end. If
 * the text is not UTF-8, every byte above 0x7f becomes '?'. NULL if memory runs out.
 */
json_t *kx_json_text(const char *text, size_t max);

#endif
