// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/afperf/file.h"

#include <string.h>

#include "base/printable.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

_Static_assert(sizeof(KX_AFPERF_HEADER) == 16 + 1, "the header has 16 bytes");

static const char *const names[] = {
	[KX_AFPERF_MEASUREMENT_TYPE] = "MeasurementType",
	[KX_AFPERF_PAUSE_RESUME] = "PauseResume",
	[KX_AFPERF_RUN_AGGREGATE] = "RunAggregate",
	[KX_AFPERF_RUN_INFO] = "RunInfo",
	[KX_AFPERF_RUN_POINT] = "RunPoint",
	[KX_AFPERF_SECTION_INFO] = "SectionInfo",
	[KX_AFPERF_SECTION_POINT] = "SectionPoint",
	[KX_AFPERF_SECTION_START] = "SectionStart",
	[KX_AFPERF_SECTION_STOP] = "SectionStop",
};

void kx_afperf_header(struct kx_afperf_writer *w)
{
	kx_text_str(w->out, KX_AFPERF_HEADER "\n");
}

void kx_afperf_begin(struct kx_afperf_writer *w, enum kx_afperf_record type)
{
	if (w->compact)
		kx_text_u64(w->out, type);
	else
		kx_text_str(w->out, names[type]);
}

void kx_afperf_end(struct kx_afperf_writer *w)
{
	kx_text_char(w->out, '\n');
}

void kx_afperf_number(struct kx_afperf_writer *w, uint64_t value)
{
	kx_text_char(w->out, ',');
	kx_text_u64(w->out, value);
}

void kx_afperf_hex(struct kx_afperf_writer *w, uint64_t value)
{
	char digits[16];
	size_t at = sizeof(digits);

	do {
		digits[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	kx_text_bytes(w->out, ",0x", 3);
	kx_text_bytes(w->out, digits + at, sizeof(digits) - at);
}

/* RFC 4180 has no control characters, except for line ends inside quotes. */
static void write_char(struct kx_text_out *o, const char **at, const char *end)
{
	const char *p = *at;
	size_t n = kx_utf8_length((const unsigned char *)p, (size_t)(end - p));

	*at += n ? n : 1;
	if (n == 3 && !memcmp(p, BYTE_ORDER_MARK, 3))
		n = 0;
	else if (!n && ((*p >= ' ' && *p < 0x7f) || *p == '\n' || *p == '\r'))
		n = 1;
	if (*p == '"')
		kx_text_char(o, '"');
	if (n)
		kx_text_bytes(o, p, n);
	else
		kx_text_str(o, REPLACEMENT);
}

void kx_afperf_text(struct kx_afperf_writer *w, const char *text)
{
	size_t plain = 0;
	const char *end;
	bool quote;

	kx_text_char(w->out, ',');
	/* Most names need no quoting. */
	while (text[plain] >= ' ' && text[plain] < 0x7f && text[plain] != '"' && text[plain] != ',')
		plain++;
	if (!text[plain]) {
		kx_text_bytes(w->out, text, plain);
		return;
	}
	quote = strpbrk(text, ",\"\r\n");
	end = text + strlen(text);
	if (quote)
		kx_text_char(w->out, '"');
	while (text < end)
		write_char(w->out, &text, end);
	if (quote)
		kx_text_char(w->out, '"');
}

void kx_afperf_tags(struct kx_afperf_writer *w, const char *const *names_values, unsigned n)
{
	char text[2048];
	size_t at = 0;

	for (unsigned i = 0; i < n; i++) {
		const char *name = names_values[2 * i], *value = names_values[2 * i + 1];

		if (!*value || at + strlen(name) + 3 > sizeof(text))
			continue;
		if (at)
			text[at++] = ';';
		at += strlen(strcpy(text + at, name));
		text[at++] = '=';
		for (; *value && at + 1 < sizeof(text); value++)
			text[at++] = *value == ';' ? '_' : *value;
	}
	text[at] = 0;
	kx_afperf_text(w, text);
}
