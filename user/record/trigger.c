// SPDX-License-Identifier: BSD-2-Clause
#include "record/trigger.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"

#define ENTRY "@entry"
#define MAX_SECONDS 86400

static const struct {
	const char *name;
	double ns;
} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };

static const char *skip_blanks(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

/* "10ms", "1.5 s"; a number alone has no meaning here. */
static int parse_time(const char *trigger, const char *text, const char *stop, uint64_t *ns, struct kx_err *err)
{
	const char *p = skip_blanks(text);
	char *end;
	double value, scale = 0;
	size_t len;

	if (!isdigit((unsigned char)*p) && *p != '.')
		return kx_err_set(err, -EINVAL,
				  "the trigger '%s' needs a time after '>', as in 'FUNCTION>10ms'",
				  trigger);
	value = strtod(p, &end);
	p = skip_blanks(end);
	for (len = 0; isalpha((unsigned char)p[len]); len++)
		;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i].name) == len && !strncmp(p, units[i].name, len))
			scale = units[i].ns;
	if (!scale || skip_blanks(p + len) < stop)
		return kx_err_set(err, -EINVAL,
				  "the time of the trigger '%s' needs a unit: ns, us, ms or s, as in "
				  "'FUNCTION>10ms'",
				  trigger);
	value *= scale;
	if (!(value >= 1 && value <= MAX_SECONDS * 1e9))
		return kx_err_set(err, -EINVAL,
				  "the time of the trigger '%s' is not between 1 ns and a day; for every "
				  "call write 'FUNCTION@entry'",
				  trigger);
	*ns = (uint64_t)(value + 0.5);
	return 0;
}

static bool is_time(const char *text)
{
	text = skip_blanks(text);
	return isdigit((unsigned char)*text) || *text == '.';
}

/* Only functions of programs and libraries can be triggers. */
static int check_pattern(const struct kx_trigger *t, struct kx_err *err)
{
	struct kx_pattern pattern;
	int code = kx_pattern_parse(t->pattern, &pattern, err);

	if (code)
		return kx_err_prefix(err, "the trigger '%s'", t->text);
	if (pattern.space != KX_PATTERN_USER)
		code = kx_err_set(err, -EINVAL,
				  "the trigger '%s' names a function of the kernel, a system call or a USDT marker, which "
				  "can be recorded but cannot be triggers; name a function of a program or "
				  "library",
				  t->text);
	kx_pattern_free(&pattern);
	return code;
}

static int take_pattern(struct kx_trigger *t, const char *from, const char *to, struct kx_err *err)
{
	from = skip_blanks(from);
	while (to > from && isspace((unsigned char)to[-1]))
		to--;
	if (to <= from)
		return kx_err_set(err, -EINVAL,
				  "the trigger '%s' names no function; write 'FUNCTION>10ms' or "
				  "'FUNCTION@entry'",
				  t->text);
	t->pattern = strndup(from, (size_t)(to - from));
	if (!t->pattern)
		return kx_err_set(err, -ENOMEM, "no memory");
	return check_pattern(t, err);
}

static int parse(struct kx_trigger *t, struct kx_err *err)
{
	const char *text = t->text, *end = text + kx_condition_find(text), *mark;
	size_t entry = strlen(ENTRY);
	int code;

	if (*end) {
		code = kx_condition_parse("--trigger", text, (size_t)(end - text) + strlen(" if "), &t->condition, err);
		if (code)
			return code;
		t->conditional = true;
	}

	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	if ((size_t)(end - text) >= entry && !strncmp(end - entry, ENTRY, entry)) {
		t->on_entry = true;
		return take_pattern(t, text, end - entry, err);
	}
	/* Names of templates contain '>' too; the time follows the last one. */
	mark = memrchr(text, '>', (size_t)(end - text));
	if (t->conditional && !(mark && is_time(mark + 1)))
		return take_pattern(t, text, end, err);
	if (!mark)
		return kx_err_set(err, -EINVAL,
				  "the trigger '%s' has no condition: write 'FUNCTION>10ms' for calls that "
				  "last longer, 'FUNCTION if ret < 0' for those that meet a condition, or 'FUNCTION@entry' for every call",
				  text);
	code = parse_time(text, mark + 1, end, &t->over_ns, err);
	return code ? code : take_pattern(t, text, mark, err);
}

int kx_trigger_parse(const char *text, struct kx_trigger *out, struct kx_err *err)
{
	int code;

	memset(out, 0, sizeof(*out));
	out->text = strdup(text);
	code = out->text ? parse(out, err) : kx_err_set(err, -ENOMEM, "no memory");
	if (code)
		kx_trigger_free(out);
	return code;
}

void kx_trigger_free(struct kx_trigger *t)
{
	free(t->text);
	free(t->pattern);
	kx_condition_free(&t->condition);
	memset(t, 0, sizeof(*t));
}

char *kx_trigger_duration(uint64_t ns, char *text, unsigned size)
{
	size_t unit = 0, last = sizeof(units) / sizeof(units[0]) - 1;
	double value;

	/* "1 ms", not "1000 us", for what rounds up to 1000 at three digits */
	while (unit < last && (double)ns >= units[unit + 1].ns * 0.9995)
		unit++;
	value = (double)ns / units[unit].ns;
	snprintf(text, size, value < 1000 ? "%.3g %s" : "%.0f %s", value, units[unit].name);
	return text;
}
