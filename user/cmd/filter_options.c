// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/filter_options.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/pattern.h"

const char kx_filter_help[] =
	"      --time FROM..TO       this part of the trace; either may be left out. In seconds since\n"
	"                            its start, or with a unit: ns, us, ms, s\n"
	"      --pid PID[,PID...]    these processes only\n"
	"      --tid TID[,TID...]    these threads only\n"
	"      --function PATTERN    these functions only, [MODULE:]GLOB; may be repeated\n"
	"  -x, --exclude PATTERN     without these; may be repeated\n"
	"      --min-duration TIME   without calls that are shorter, e.g. 10us\n"
	"      --depth N             the N outermost calls of each stack only\n";

static int take_time(struct kx_filter_options *o, const char *value, struct kx_err *err)
{
	const char *dots = strstr(value, "..");
	uint64_t from = 0, to = 0;

	if (!dots || (dots == value && !dots[2]) ||
	    (dots != value && !kx_parse_time(value, dots, &from)) ||
	    (dots[2] && !kx_parse_time(dots + 2, NULL, &to)))
		return kx_err_set(err, -EINVAL, "--time takes FROM..TO, such as 0.5..2, 10ms.. or "
				  "..1.5s, not '%s'", value);
	if (dots[2] && to <= from)
		return kx_err_set(err, -EINVAL, "--time %s is empty: it ends before it begins",
				  value);
	o->filter.from_ns = from;
	o->filter.to_ns = to;
	return 0;
}

static int take_ids(const int32_t **list, size_t *n, const char *option, const char *value,
		    struct kx_err *err)
{
	const char *p = value;

	do {
		int32_t *bigger = reallocarray((int32_t *)(uintptr_t)*list, *n + 1, sizeof(**list));
		char *end;
		long id;

		if (!bigger)
			return kx_err_set(err, -ENOMEM, "out of memory");
		*list = bigger;
		errno = 0;
		id = strtol(p, &end, 10);
		if (end == p || (*end && *end != ',') || errno || id < INT32_MIN || id > INT32_MAX)
			return kx_err_set(err, -EINVAL, "%s takes numbers with commas between them, "
					  "not '%s'", option, value);
		bigger[(*n)++] = (int32_t)id;
		p = *end ? end + 1 : NULL;
	} while (p);
	return 0;
}

static int take_pattern(const char *const **list, size_t *n, const char *value, struct kx_err *err)
{
	const char **bigger = reallocarray((void *)(uintptr_t)*list, *n + 1, sizeof(*bigger));
	struct kx_pattern pattern;
	int r;

	if (!bigger)
		return kx_err_set(err, -ENOMEM, "out of memory");
	*list = bigger;
	r = kx_pattern_parse(value, &pattern, err);
	if (r)
		return r;
	kx_pattern_free(&pattern);
	bigger[(*n)++] = value;
	return 0;
}

static int take_duration(struct kx_filter_options *o, const char *value, struct kx_err *err)
{
	if (kx_parse_time(value, NULL, &o->filter.min_duration_ns))
		return 0;
	return kx_err_set(err, -EINVAL, "--min-duration takes a time such as 10us, 1.5ms or 2 "
			  "(seconds), not '%s'", value);
}

static int take_depth(struct kx_filter_options *o, const char *value, struct kx_err *err)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || !n || n > UINT32_MAX)
		return kx_err_set(err, -EINVAL, "--depth takes a number above 0, not '%s'", value);
	o->filter.max_depth = (uint32_t)n;
	return 0;
}

int kx_filter_option(struct kx_filter_options *o, int option, const char *value,
		     struct kx_err *err)
{
	struct kx_call_filter *f = &o->filter;

	o->given = true;
	switch (option) {
	case KX_FILTER_TIME:
		return take_time(o, value, err);
	case KX_FILTER_PID:
		return take_ids(&f->pids, &f->npids, "--pid", value, err);
	case KX_FILTER_TID:
		return take_ids(&f->tids, &f->ntids, "--tid", value, err);
	case KX_FILTER_FUNCTION:
		return take_pattern(&f->include, &f->ninclude, value, err);
	case KX_FILTER_EXCLUDE:
		return take_pattern(&f->exclude, &f->nexclude, value, err);
	case KX_FILTER_MIN_DURATION:
		return take_duration(o, value, err);
	default:
		return take_depth(o, value, err);
	}
}

void kx_filter_options_free(struct kx_filter_options *o)
{
	free((void *)(uintptr_t)o->filter.pids);
	free((void *)(uintptr_t)o->filter.tids);
	free((void *)(uintptr_t)o->filter.include);
	free((void *)(uintptr_t)o->filter.exclude);
	memset(o, 0, sizeof(*o));
}
