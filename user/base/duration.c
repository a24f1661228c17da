// SPDX-License-Identifier: BSD-2-Clause
#include "base/duration.h"

#include <stddef.h>
#include <string.h>

bool kx_parse_time(const char *text, const char *end, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "", 1000000000 }, { "s", 1000000000 },   { "ms", 1000000 },
		{ "us", 1000 },	    { "\302\265s", 1000 }, { "ns", 1 },
		{ "m", 60000000000 }, { "min", 60000000000 }, { "h", 3600000000000 },
	};
	uint64_t whole = 0, fraction = 0, scale = 1;
	const char *p = text;
	size_t left;

	if (!end)
		end = text + strlen(text);
	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (whole > UINT64_MAX / 10 - 10)
			return false;
		whole = whole * 10 + (uint64_t)(*p - '0');
	}
	if (p < end && *p == '.')
		for (p++; p < end && *p >= '0' && *p <= '9'; p++) {
			if (scale >= 1000000000) /* below a nanosecond */
				continue;
			fraction = fraction * 10 + (uint64_t)(*p - '0');
			scale *= 10;
		}
	if (p == text || (p == text + 1 && *text == '.'))
		return false;
	left = (size_t)(end - p);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strlen(units[i].name) != left || memcmp(p, units[i].name, left))
			continue;
		if (whole > UINT64_MAX / units[i].ns - 1)
			return false;
		*ns = whole * units[i].ns + fraction * units[i].ns / scale;
		return true;
	}
	return false;
}
