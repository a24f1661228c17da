// SPDX-License-Identifier: BSD-2-Clause
#include "base/json_text.h"

#include <stdlib.h>
#include <string.h>

json_t *kx_json_text(const char *text, size_t max)
{
	size_t len = text ? strnlen(text, max) : 0;
	json_t *json;
	char *ascii;

	if (!len)
		return json_string("");
	/* The kernel truncates thread names, possibly inside a character of up to 4 bytes. */
	for (size_t cut = 0; cut < 4 && cut < len; cut++) {
		json = json_stringn(text, len - cut);
		if (json)
			return json;
	}
	ascii = malloc(len);
	if (!ascii)
		return NULL;
	for (size_t i = 0; i < len; i++)
		ascii[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
	json = json_stringn(ascii, len);
	free(ascii);
	return json;
}
