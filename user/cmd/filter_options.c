// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/filter_options.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"

/* "FROM..TO" into a filter's from_ns and to_ns. */
static int set_time(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	struct kx_call_filter *f = field;
	const char *dots = strstr(value, "..");
	uint64_t from = 0, to = 0;

	(void)o;
	if (!dots || (dots == value && !dots[2]) ||
	    (dots != value && !kx_parse_time(value, dots, &from)) ||
	    (dots[2] && !kx_parse_time(dots + 2, NULL, &to)))
		return kx_err_set(err, -EINVAL,
				  "--time takes FROM..TO, such as 0.5..2, 10ms.. or ..1.5s, not '%s'",
				  value);
	if (dots[2] && to <= from)
		return kx_err_set(err, -EINVAL, "--time %s is empty: it ends before it begins",
				  value);
	f->from_ns = from;
	f->to_ns = to;
	return 0;
}

const struct kx_option kx_filter_options[] = {
	{ .name = "time", .kind = KX_OPTION_CUSTOM, .argument = "FROM..TO", .set = set_time,
	  .help = "this part of the trace; either end may be left out. In seconds since its start, "
		  "or with a unit: ns, us, ms, s",
	  .manual = "A part of the trace, in seconds since its start or with a unit (ns, us, ms, s). "
		    "Either end may be left out. A call that crosses an end is cut there." },
	{ .name = "pid", .kind = KX_OPTION_IDS, .argument = "PID[,PID...]",
	  KX_LIST(struct kx_call_filter, pids, npids), .help = "these processes only" },
	{ .name = "tid", .kind = KX_OPTION_IDS, .argument = "TID[,TID...]",
	  KX_LIST(struct kx_call_filter, tids, ntids), .help = "these threads only" },
	{ .name = "function", .short_name = 'f', .kind = KX_OPTION_PATTERNS, .argument = "PATTERN",
	  KX_LIST(struct kx_call_filter, include, ninclude),
	  .help = "these functions only, [MODULE:]GLOB; may be repeated",
	  .manual = "Only these functions; may be repeated. Without MODULE a pattern matches in every "
		    "module." },
	{ .name = "exclude", .short_name = 'x', .kind = KX_OPTION_PATTERNS, .argument = "PATTERN",
	  KX_LIST(struct kx_call_filter, exclude, nexclude),
	  .help = "without these; may be repeated" },
	{ .name = "min-duration", .kind = KX_OPTION_TIME, .argument = "TIME",
	  KX_FIELD(struct kx_call_filter, min_duration_ns),
	  .help = "without calls that are shorter, e.g. 10us" },
	{ .name = "depth", .kind = KX_OPTION_NUMBER, .argument = "N", .min = 1,
	  KX_FIELD(struct kx_call_filter, max_depth),
	  .help = "the N outermost calls of each stack only" },
	{ .name = "raw", .kind = KX_OPTION_FLAG, KX_FIELD(struct kx_call_filter, raw),
	  .help = "durations as recorded, with the time that the probes themselves took",
	  .manual = "Durations as they were recorded. Otherwise the time that the probes themselves took is "
		    "subtracted: of a call its own probes', of its callers also that of the calls nested in it. "
		    "The recorder measures it at its start, for each kind of probe." },
	{ 0 },
};

bool kx_filter_is_set(const struct kx_call_filter *f)
{
	return f->from_ns || f->to_ns || f->npids || f->ntids || f->ninclude || f->nexclude ||
	       f->min_duration_ns || f->max_depth;
}
