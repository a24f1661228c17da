// SPDX-License-Identifier: BSD-2-Clause
/* The command line of `kxray record`. */
#ifndef KX_RECORD_OPTIONS_H
#define KX_RECORD_OPTIONS_H

#include <stdbool.h>

#include "record/count.h"
#include "record/call_rate_selection.h"
#include "record/recording.h"

struct kx_record_arguments {
	struct kx_recording_options o; /* borrows from the lists below and from argv */
	const char **include, **exclude;
	pid_t *pids;
	struct kx_flight_options flight; /* used if o.flight points to it */
	struct kx_trigger *triggers;
	struct kx_counts counts; /* of --count */
	int count_failed;
	struct kx_err count_error;
	double heat_seconds; /* --by-heat; 0: functions are not chosen by heat */
	double max_overhead; /* percent of one CPU */
	struct kx_call_rates heat;
	bool json, quiet, fail_on_loss, no_follow;
};

/*
 * Fills @a, which must be zeroed but for o.mechanism, o.argc and o.argv. 0 to go on; else kxray's
 * exit status + 1, and everything has been said on stdout or stderr.
 */
int kx_record_parse(struct kx_record_arguments *a, int argc, char **argv);
void kx_record_arguments_free(struct kx_record_arguments *a);

#endif
