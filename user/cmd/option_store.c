// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/option_store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/pattern.h"
#include "cmd/option_values.h"

static int check_pattern(const char *value, struct kx_err *err)
{
	struct kx_pattern pattern;
	int r = kx_pattern_parse(value, &pattern, err);

	if (!r)
		kx_pattern_free(&pattern);
	return r;
}

static void store_integer(void *field, size_t size, uint64_t value)
{
	const uint8_t u8 = (uint8_t)value;
	const uint16_t u16 = (uint16_t)value;
	const uint32_t u32 = (uint32_t)value;

	memcpy(field, size == 1 ? (const void *)&u8 : size == 2 ? (const void *)&u16 :
		      size == 4 ? (const void *)&u32 : (const void *)&value, size);
}

/* The largest value that the row allows. */
static uint64_t max_of(const struct kx_option *o)
{
	return o->max ? o->max : o->size >= 8 ? UINT64_MAX : (1ULL << 8 * o->size) - 1;
}

/* What the option takes, in words for a message. */
static const char *takes(const struct kx_option *o, char *text, size_t size)
{
	size_t n = 0;

	if (o->takes)
		return o->takes;
	switch (o->kind) {
	case KX_OPTION_NUMBER:
		if (!o->max)
			return o->min ? "a number above 0" : "a number";
		snprintf(text, size, "%" PRIu64 " to %" PRIu64, o->min, o->max);
		return text;
	case KX_OPTION_SIZE:
		if (o->min <= 1)
			return "bytes, as in 512K or 16M";
		snprintf(text, size, "bytes, %" PRIu64 "K at least, as in 512K or 16M", o->min >> 10);
		return text;
	case KX_OPTION_TIME:
		if (!o->max)
			return "a time such as 10us, 1.5ms or 2 (seconds)";
		snprintf(text, size, "a time of %" PRIu64 "ns to %" PRIu64 "s, as in 5us or 0.5ms", o->min,
			 o->max / 1000000000);
		return text;
	case KX_OPTION_SECONDS:
		if (!o->max)
			return "a time above 0, as in 5 (seconds), 500ms or 2m";
		snprintf(text, size, "a time above 0, at most %" PRIu64 "s, as in 5 (seconds), 500ms or 2m",
			 o->max);
		return text;
	case KX_OPTION_PERCENT:
		return "percent, as in 5 or 12.5%";
	case KX_OPTION_IDS:
		return "numbers separated by commas, as in 12,34";
	default:
		for (size_t i = 0; o->words && o->words[i] && n < size; i++)
			n += (size_t)snprintf(text + n, size - n, "%s%s",
					      !i ? "" : o->words[i + 1] ? ", " : " or ", o->words[i]);
		return text;
	}
}

static int store_ids(const struct kx_option *o, void *field, size_t *count, const char *value,
		     struct kx_err *err)
{
	int32_t *list;
	int r;

	memcpy(&list, field, sizeof(list));
	r = kx_value_ids(value, (int32_t)o->min, &list, count);
	memcpy(field, &list, sizeof(list));
	return r == -ENOMEM ? kx_err_set(err, r, "out of memory") : r;
}

static int store_text(const struct kx_option *o, void *field, size_t *count, const char *value,
		      struct kx_err *err)
{
	const char **list;
	int r = o->kind == KX_OPTION_PATTERNS ? check_pattern(value, err) : 0;

	if (r)
		return r;
	memcpy(&list, field, sizeof(list));
	r = kx_value_text(value, &list, count);
	memcpy(field, &list, sizeof(list));
	return r ? kx_err_set(err, r, "out of memory") : 0;
}

/* Numbers, words and ids: -EINVAL without a text if @value is none. */
static int store_value(const struct kx_option *o, void *field, size_t *count, const char *value,
		       struct kx_err *err)
{
	double real, top = o->max ? (double)o->max : 1e9;
	uint64_t n = 0;
	bool ok;
	int i;

	switch (o->kind) {
	case KX_OPTION_NUMBER:
		ok = kx_value_number(value, o->min, max_of(o), &n);
		break;
	case KX_OPTION_SIZE:
		ok = kx_value_size(value, o->min, &n);
		break;
	case KX_OPTION_TIME:
		ok = kx_parse_time(value, NULL, &n) && n >= o->min && n <= max_of(o);
		break;
	case KX_OPTION_CHOICE:
		i = kx_value_choice(value, o->words);
		ok = i >= 0;
		n = (uint64_t)(int64_t)(i + o->constant);
		break;
	case KX_OPTION_IDS:
		return store_ids(o, field, count, value, err);
	case KX_OPTION_SECONDS:
		real = kx_parse_time(value, NULL, &n) ? (double)n / 1e9 : 0;
		if (!(real > 0) || real > top)
			return -EINVAL;
		memcpy(field, &real, sizeof(real));
		return 0;
	default:
		if (!kx_value_percent(value, top, &real))
			return -EINVAL;
		memcpy(field, &real, sizeof(real));
		return 0;
	}
	if (!ok)
		return -EINVAL;
	store_integer(field, o->size, n);
	return 0;
}

int kx_option_store(const struct kx_option *o, void *field, size_t *count, const char *shown,
		    const char *value, struct kx_err *err)
{
	char text[160] = "";
	int r;

	if (!value && o->kind == KX_OPTION_CHOICE) {
		store_integer(field, o->size, 1);
		return 0;
	}
	switch (o->kind) {
	case KX_OPTION_FLAG:
		store_integer(field, o->size, 1);
		return 0;
	case KX_OPTION_CONSTANT:
		store_integer(field, o->size, (uint64_t)(int64_t)o->constant);
		return 0;
	case KX_OPTION_TEXT:
		memcpy(field, &value, sizeof(value));
		return 0;
	case KX_OPTION_TEXTS:
	case KX_OPTION_PATTERNS:
		return store_text(o, field, count, value, err);
	case KX_OPTION_CUSTOM:
		return o->set(field, o, value, err);
	default:
		r = store_value(o, field, count, value, err);
		if (r != -EINVAL)
			return r;
		return kx_err_set(err, r, "%s takes %s, not '%s'", shown,
				  takes(o, text, sizeof(text)), value);
	}
}
