// SPDX-License-Identifier: BSD-2-Clause
/* The command line of `kxray record`: what its options (record_options.c) fill, checked as a whole. */
#ifndef KX_RECORD_ARGUMENTS_H
#define KX_RECORD_ARGUMENTS_H

#include <stdbool.h>

#include "cmd/options.h"
#include "cmd/status_line.h"
#include "exporters/exporter.h"
#include "record/call_rate_selection.h"
#include "record/count.h"
#include "record/recording.h"

/* --max-overhead where no functions are named; percent of the CPU time that the program uses. */
#define KX_DEFAULT_OVERHEAD 5.0

struct kx_record_arguments {
	struct kx_recording_options o; /* borrows from the lists below and from argv */
	const char **include, **exclude; /* of o.select.ninclude and .nexclude patterns */
	const char **labels; /* of o.nlabels */
	pid_t *pids; /* of o.npids */
	struct kx_value_spec *specs; /* of o.nspecs */
	const char **otherwise; /* see struct kx_select_options */
	const char **spans; /* --span, of nspans: as given */
	size_t nspans;
	char **span_patterns; /* of o.select.nspans */
	struct kx_condition_rule *rules; /* of o.nrules */
	struct kx_flight_options flight; /* used if o.flight points to it */
	struct kx_trigger *triggers;
	struct kx_counts counts; /* of --count */
	int count_failed;
	struct kx_err count_error;
	double heat_seconds; /* --by-heat; 0: not given */
	double max_overhead; /* percent of the CPU time that the program uses; 0: not given */
	bool yes;
	struct kx_call_rates heat;
	int follow; /* 1: --follow, 2: --follow=exact, -1: --no-follow, 0: neither */
	char *compressed; /* the output with its suffix, if that was not given */
	bool json, quiet, fail_on_loss;
	struct kx_status_line status;
	const struct kx_exporter *open; /* --open; NULL: not given */
	bool kill; /* the command, when the recording ends */
};

/*
 * Fills @a from the command line of @c, whose rows are kx_record_options. @a must be zeroed but
 * for o.mechanism (-1), o.argc and o.argv. Returns as kx_options_parse does. In any case free with kx_record_arguments_free.
 */
int kx_record_parse(const struct kx_command *c, struct kx_record_arguments *a, int argc, char **argv,
		    struct kx_err *err);
/*
 * Adds the condition that @text, a value of @option, has from character @from on, for the functions of @pattern (NULL: all), which is
 * taken over, also on failure. Errors: those of kx_condition_parse, -ENOMEM.
 */
int kx_record_add_rule(struct kx_record_arguments *a, char *pattern, const char *option, const char *text, size_t from,
		       struct kx_err *err);
void kx_record_arguments_free(const struct kx_command *c, struct kx_record_arguments *a);

#endif
