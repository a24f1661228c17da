// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/common/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/printable.h"

void kx_event_text(char text[KX_EVENT_TEXT], uint16_t type, const uint8_t *data, uint32_t size)
{
	static const char hex[] = "0123456789abcdef";
	size_t at = 0;

	if (type)
		at = (size_t)snprintf(text, KX_EVENT_TEXT, "type %u: ", type);
	for (uint32_t i = 0; i < size;) {
		size_t n = kx_utf8_length(data + i, size - i);

		/* "\xNN" or four bytes of UTF-8, or "..." and the NUL */
		if (at + 8 > KX_EVENT_TEXT) {
			memcpy(text + at, "...", 3);
			at += 3;
			break;
		}
		if (!n && data[i] >= ' ' && data[i] < 0x7f)
			n = 1;
		if (n) {
			memcpy(text + at, data + i, n);
			at += n;
		} else {
			text[at++] = '\\';
			text[at++] = 'x';
			text[at++] = hex[data[i] >> 4];
			text[at++] = hex[data[i] & 15];
			n = 1;
		}
		i += (uint32_t)n;
	}
	text[at] = 0;
}

void kx_export_process_title(const struct kx_export *x, const struct kx_call_thread *t,
			     char title[KX_EXPORT_TITLE])
{
	char own[KX_PROCESS_TITLE];

	kx_call_process_title(t, own, sizeof(own));
	if (kx_export_is_shared(x))
		snprintf(title, KX_EXPORT_TITLE, "%s: %s", x->place->host, *own ? own : "process");
	else
		snprintf(title, KX_EXPORT_TITLE, "%s", own);
}

/* "2026-01-31T23:59:59.123456789Z", the form in the session. */
static bool parse_time(const char *text, int64_t *sec, uint32_t *nsec)
{
	struct tm tm = { 0 };
	uint32_t scale = 100000000;

	text = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!text)
		return false;
	*sec = timegm(&tm);
	*nsec = 0;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++, scale /= 10)
			*nsec += (uint32_t)(*text - '0') * scale;
	return !strcmp(text, "Z") && *sec >= 0;
}

bool kx_trace_started(const struct kx_export *x, uint64_t first_tsc, int64_t *sec, uint32_t *nsec)
{
	const char *text = json_string_value(json_object_get(x->session, "started"));
	const json_t *clock = json_object_get(x->session, "clock");
	json_int_t start = json_integer_value(json_object_get(clock, "start_tsc"));
	uint64_t later;

	if (!text || !parse_time(text, sec, nsec))
		return false;
	/* The trace may be a part of the recording. */
	if (start > 0 && first_tsc > (uint64_t)start) {
		later = kx_trace_ns(first_tsc - (uint64_t)start, x->tsc_hz) + *nsec;
		*sec += (int64_t)(later / 1000000000);
		*nsec = (uint32_t)(later % 1000000000);
	}
	return true;
}
