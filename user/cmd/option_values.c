// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/option_values.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZE (1ULL << 34) /* bytes */

bool kx_value_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	unsigned long long n;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end || n < min || n > max)
		return false;
	*out = n;
	return true;
}

bool kx_value_size(const char *text, uint64_t min, uint64_t *out)
{
	static const char units[] = "KMG";
	unsigned long long n;
	unsigned shift = 0;
	const char *unit;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
	}
	if (errno || *end || n > MAX_SIZE >> shift || n << shift < min)
		return false;
	*out = n << shift;
	return true;
}

bool kx_value_percent(const char *text, double max, double *out)
{
	double value;
	char *end;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	value = strtod(text, &end);
	end += *end == '%';
	if (end == text || *end || !(value > 0 && value <= max))
		return false;
	*out = value;
	return true;
}

int kx_value_choice(const char *text, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	return -1;
}

static int add_id(int32_t id, int32_t **list, size_t *n)
{
	int32_t *grown;

	for (size_t i = 0; i < *n; i++)
		if ((*list)[i] == id)
			return 0;
	grown = reallocarray(*list, *n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	*list = grown;
	grown[(*n)++] = id;
	return 0;
}

int kx_value_ids(const char *text, int32_t min, int32_t **list, size_t *n)
{
	for (const char *p = text;; p++) {
		long id;
		char *end;
		int r;

		if (!isdigit((unsigned char)*p))
			return -EINVAL;
		errno = 0;
		id = strtol(p, &end, 10);
		if (errno || id < min || id > INT32_MAX || (*end && *end != ','))
			return -EINVAL;
		r = add_id((int32_t)id, list, n);
		if (r || !*end)
			return r;
		p = end;
	}
}

int kx_value_text(const char *text, const char ***list, size_t *n)
{
	const char **grown = reallocarray(*list, *n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	*list = grown;
	grown[(*n)++] = text;
	return 0;
}
