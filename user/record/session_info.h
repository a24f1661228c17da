// SPDX-License-Identifier: BSD-2-Clause
/* The session's data in the map: host, clock, targets, options, counts. */
#ifndef KX_SESSION_INFO_H
#define KX_SESSION_INFO_H

#include <jansson.h>
#include <sys/types.h>

#include "tracer/clock.h"
#include "binary/modules.h"
#include "collect/process_table.h"
#include "record/clock_log.h"
#include "record/recording.h"
#include "select/select.h"

/*
 * A new object, or NULL if memory ran out; see kx_session_info_processes for its processes. Strings
 * that are not UTF-8 are left out.
 */
json_t *kx_session_info(const struct kx_recording_options *options, const struct kx_selection *sel,
			const struct kx_clock *clock, const char *mechanism, uint64_t start_tsc,
			const struct kx_clock_log *log);

/* Where the code of a process lies, so that its run-time addresses can be understood. */
json_t *kx_session_mappings(const struct kx_modules *mods);

/*
 * Adds the processes, as far as they are known now: see kx_process_table_json.
 * Errors: -ENOMEM.
 */
int kx_session_info_processes(json_t *info, const struct kx_process_table *table,
			      uint64_t start_tsc, uint64_t tsc_hz);

/* The short form for the trace itself: "kxray:session {...}"; free with free(). NULL on -ENOMEM. */
char *kx_session_note(const json_t *info);

/*
 * Adds the final counts, the clock's error and snapshots up to now; @seconds: of the recording, or of the part in a dump. Of
 * a rotated trace and of dumps, each file has the one of its own end.
 */
void kx_session_info_end(json_t *info, double seconds, const struct kx_clock *clock, const struct kx_clock_log *log,
			 const struct kx_collector_counts *counts);

/* {"met", "rejected", "unknown", "undecided"}: calls by enum kx_condition_count; NULL if memory ran out. */
json_t *kx_condition_counts_json(const uint64_t counts[KX_CONDITION_COUNTS]);

#endif
