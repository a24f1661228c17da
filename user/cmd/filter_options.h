// SPDX-License-Identifier: BSD-2-Clause
/* --time, --pid, --tid, --function, --exclude, --min-duration, --depth: what report and export leave out. */
#ifndef KX_FILTER_OPTIONS_H
#define KX_FILTER_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>

#include "calls/calls.h"
#include "base/err.h"

/* For a command's getopt_long table; the values of its own long options must stay below these. */
enum {
	KX_FILTER_TIME = 0x4000,
	KX_FILTER_PID,
	KX_FILTER_TID,
	KX_FILTER_FUNCTION,
	KX_FILTER_EXCLUDE,
	KX_FILTER_MIN_DURATION,
	KX_FILTER_DEPTH,
};

#define KX_FILTER_LONG_OPTIONS \
	{ "time", required_argument, NULL, KX_FILTER_TIME }, \
	{ "pid", required_argument, NULL, KX_FILTER_PID }, \
	{ "tid", required_argument, NULL, KX_FILTER_TID }, \
	{ "function", required_argument, NULL, KX_FILTER_FUNCTION }, \
	{ "exclude", required_argument, NULL, KX_FILTER_EXCLUDE }, \
	{ "min-duration", required_argument, NULL, KX_FILTER_MIN_DURATION }, \
	{ "depth", required_argument, NULL, KX_FILTER_DEPTH }

/* Lines for --help. */
extern const char kx_filter_help[];

/* All zero to begin with. */
struct kx_filter_options {
	struct kx_call_filter filter; /* its lists are owned */
	bool given; /* any of them */
};

/*
 * Takes the option with value @option (one of KX_FILTER_*) of the command line; @value must outlive
 * @o. Errors, for people who mistyped: -EINVAL; -ENOMEM.
 */
int kx_filter_option(struct kx_filter_options *o, int option, const char *value,
		     struct kx_err *err);
void kx_filter_options_free(struct kx_filter_options *o);

#endif
