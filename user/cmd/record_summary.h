// SPDX-License-Identifier: BSD-2-Clause
/* The summary at the end of `kxray record`. */
#ifndef KX_RECORD_SUMMARY_H
#define KX_RECORD_SUMMARY_H

#include <stdio.h>

#include "record/recording.h"

/* On stderr, for people: events, losses by reason, clock, and what was closed or left out. */
void kx_record_summary_print(const struct kx_recording_options *o,
			     const struct kx_recording_result *r);

/* The same as one JSON object and a newline; not 0 if it cannot be made or written. */
int kx_record_summary_print_json(const struct kx_recording_options *o,
				 const struct kx_recording_result *r, FILE *to);

#endif
