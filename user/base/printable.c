// SPDX-License-Identifier: BSD-2-Clause
#include "base/printable.h"

#include <emmintrin.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

size_t kx_utf8_length(const unsigned char *p, size_t size)
{
	size_t n = *p >= 0xc2 && *p < 0xe0   ? 2
		   : (*p & 0xf0) == 0xe0     ? 3
		   : *p >= 0xf0 && *p < 0xf5 ? 4
					     : 0;

	if (!n || n > size)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, what is above U+10FFFF, and the C1 controls. */
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
	    (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f) ||
	    (*p == 0xc2 && p[1] < 0xa0))
		return 0;
	return n;
}

size_t kx_printable_char(const unsigned char *p, size_t size, char out[KX_PRINTABLE_MAX],
			 size_t *used)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = kx_utf8_length(p, size);

	if (!n && *p >= ' ' && *p < 0x7f)
		n = 1;
	*used = n ? n : 1;
	memcpy(out, p, n);
	if (n)
		return n;
	out[0] = '\\';
	if (*p == '\n' || *p == '\t') {
		out[1] = *p == '\n' ? 'n' : 't';
		return 2;
	}
	out[1] = 'x';
	out[2] = hex[*p >> 4];
	out[3] = hex[*p & 15];
	return 4;
}

#define BLOCK 16 /* bytes */

/* Whether all of a block is from ' ' to '~': nearly all names are. */
static bool is_plain(const char *text)
{
	const __m128i v = _mm_loadu_si128((const __m128i *)text);
	const __m128i below = _mm_cmplt_epi8(v, _mm_set1_epi8(' ')); /* signed: above 7f, too */

	return !_mm_movemask_epi8(_mm_or_si128(below, _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f))));
}

/* Puts the printable form of @text at @at, where KX_PRINTABLE_MAX bytes for each of its bytes are free; returns its end. */
static char *put(char *at, const char *text, size_t size)
{
	for (size_t i = 0, used; i < size; i += used) {
		for (; size - i >= BLOCK && is_plain(text + i); i += BLOCK, at += BLOCK)
			memcpy(at, text + i, BLOCK);
		if (i == size)
			break;
		used = 1;
		if (text[i] >= ' ' && text[i] < 0x7f) /* nearly all, and sooner done */
			*at++ = text[i];
		else
			at += kx_printable_char((const unsigned char *)text + i, size - i, at, &used);
	}
	return at;
}

char *kx_printable(const char *text, size_t size)
{
	char *out = malloc(size * KX_PRINTABLE_MAX + 1);

	if (out)
		*put(out, text, size) = 0;
	return out;
}

char *kx_printable_pair(const char *first, const char *between, const char *second, const char *end, size_t *first_size)
{
	const size_t a = strlen(first), b = strlen(second);
	char *out = malloc((a + b) * KX_PRINTABLE_MAX + strlen(between) + strlen(end) + 1), *at;

	if (!out)
		return NULL;
	at = put(out, first, a);
	*first_size = (size_t)(at - out);
	strcpy(put(stpcpy(at, between), second, b), end);
	return out;
}

void kx_print(FILE *to, const char *format, ...)
{
	size_t length = strlen(format), head = strspn(format, "\n"), tail = 0, size;
	char *text, *shown, *end;
	va_list ap;
	int n;

	while (length > head && format[length - 1 - tail] == '\n' && head + tail < length)
		tail++;
	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0)
		return;
	size = (size_t)n - head - tail;
	shown = malloc(head + size * KX_PRINTABLE_MAX + tail);
	if (shown) {
		memcpy(shown, text, head);
		end = put(shown + head, text + head, size);
		memcpy(end, text + head + size, tail);
		fwrite(shown, 1, (size_t)(end - shown) + tail, to);
	}
	free(shown);
	free(text);
}
