// SPDX-License-Identifier: BSD-2-Clause
/* Text from the outside world as JSON: jansson takes valid UTF-8 only. */
#ifndef KX_JSON_TEXT_H
#define KX_JSON_TEXT_H

#include <jansson.h>
#include <stddef.h>

/*
 * The first @max bytes of @text (NULL counts as ""), cut before a character that would
 * be halved; if it is not UTF-8, every byte above 0x7f becomes '?'. NULL: no memory.
 */
json_t *kx_json_text(const char *text, size_t max);

#endif
