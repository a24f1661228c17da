// SPDX-License-Identifier: BSD-2-Clause
#include "trace/map_strings.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/json_text.h"

int kx_map_add_string(struct kx_map_strings *s, const char *text, size_t len, uint32_t *offset)
{
	if (s->len + len >= UINT32_MAX)
		return -E2BIG;
	if (s->len + len + 1 > s->size) {
		size_t size = 2 * s->size + len + 4096;
		char *data = realloc(s->data, size);

		if (!data)
			return -ENOMEM;
		s->data = data;
		s->size = size;
	}
	*offset = (uint32_t)s->len;
	memcpy(s->data + s->len, text, len);
	s->data[s->len + len] = 0;
	s->len += len + 1;
	return 0;
}

int kx_map_add_plain(struct kx_map_strings *s, const char *text, size_t len, uint32_t *offset)
{
	int ret = kx_map_add_string(s, text, len, offset);

	for (size_t i = 0; i < len && ret == 0; i++) {
		char *c = &s->data[*offset + i];

		if ((unsigned char)*c < ' ' || *c == 0x7f || *c == '"' || *c == '\\' || *c == ';')
			*c = '_';
	}
	return ret;
}

/*
 * True for operator"" and its like: mangled as "li" and a length, and the only
 * names that get a quotation mark when llvm-xray demangles them.
 */
static bool is_literal_operator(const char *symbol)
{
	const char *at = symbol;

	if (strncmp(symbol, "_Z", 2) != 0)
		return false;
	while ((at = strstr(at, "li"))) {
		at += 2;
		if (*at >= '0' && *at <= '9')
			return true;
	}
	return false;
}

int kx_map_add_llvm_name(struct kx_map_strings *s, const char *symbol, uint32_t *offset)
{
	char *pretty = is_literal_operator(symbol) ? kx_demangle(symbol) : NULL;
	int ret;

	/* a symbol version ("malloc@@GLIBC_2.2.5") is no part of the name */
	if (pretty && strchr(pretty, '"'))
		ret = kx_map_add_plain(s, pretty, strlen(pretty), offset);
	else
		ret = kx_map_add_plain(s, symbol, *symbol ? 1 + strcspn(symbol + 1, "@") : 0,
				       offset);
	free(pretty);
	return ret;
}

int kx_map_add_text(struct kx_map_strings *s, const char *symbol, uint32_t *offset)
{
	size_t len = strlen(symbol), ascii = 0;
	json_t *json;
	int ret;

	while (ascii < len && (unsigned char)symbol[ascii] < 0x80)
		ascii++;
	if (ascii == len)
		return kx_map_add_string(s, symbol, len, offset);
	json = kx_json_text(symbol, SIZE_MAX);
	if (!json)
		return -ENOMEM;
	ret = kx_map_add_string(s, json_string_value(json), json_string_length(json), offset);
	json_decref(json);
	return ret;
}
