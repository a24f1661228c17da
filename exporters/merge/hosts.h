// SPDX-License-Identifier: BSD-2-Clause
/*
 * Traces of several hosts on one time line.
 *
 * Times of a trace are its host's CLOCK_BOOTTIME (trace/time_line.h), so what remains between two
 * hosts is a constant: when each of them was booted. A host knows that as CLOCK_REALTIME -
 * CLOCK_BOOTTIME, which its snapshots tell; it changes only if CLOCK_REALTIME is set, and how much
 * it changed is part of the error. The shared time line is CLOCK_BOOTTIME of the host that was
 * booted first, so that no time is negative.
 *
 * How far apart the CLOCK_REALTIMEs of two hosts are, no snapshot tells: a user may (offset), or
 * calls do (pairs.h).
 */
#ifndef KX_MERGE_HOSTS_H
#define KX_MERGE_HOSTS_H

#include <stdbool.h>

#include "base/err.h"
#include "trace/clock_snapshots.h"
#include "trace/fdr_reader.h"
#include "trace/time_line.h"

#define KX_MACHINE_SIZE 96  /* bytes of a machine's name, with NUL */
#define KX_MAX_MERGED	500 /* traces: pids of each get a range of int32_t */

struct kx_merge_host {
	const char *path; /* of the trace; borrowed, as the caller sets it */
	/* from the trace, see kx_merge_host_read */
	char host[KX_MACHINE_SIZE], boot_id[64], machine_id[64], started[40];
	struct kx_snapshots snapshots;
	uint64_t tsc_hz, first_tsc, last_tsc;
	/* see kx_merge_hosts_align */
	char machine[KX_MACHINE_SIZE]; /* the host's name, or another one, unique among other
					  machines and boots */
	size_t same; /* the first trace of the same machine and boot: all of these have one clock */
	int64_t boot;	 /* CLOCK_REALTIME when it was booted, ns */
	int64_t error;	 /* of that, ns: of reading the clocks, and half of what CLOCK_REALTIME was
			    set by */
	int64_t stepped; /* what CLOCK_REALTIME was set by, ns; 0: it was not */
	int64_t offset;	 /* added to its times, ns */
	struct kx_time_line line;
};

/*
 * Takes what is needed of a trace: of its session (may be NULL) the host and the clocks, and its
 * first and last ticks. Errors: -ENODATA, a trace without snapshots of the clocks cannot be placed.
 */
int kx_merge_host_read(struct kx_merge_host *h, const json_t *session,
		       const struct kx_fdr_info *info, uint64_t first_tsc, uint64_t last_tsc,
		       struct kx_err *err);

/*
 * Names machines, finds traces of the same one, and when each was booted. Errors: -EEXIST (a
 * recording is there twice); -ENODATA (two traces of one host without a boot id contradict each
 * other).
 */
int kx_merge_hosts_align(struct kx_merge_host *hosts, size_t n, struct kx_err *err);

/*
 * Adds an offset to all traces of a machine: @text is "HOST=TIME", HOST a machine, a host's name or
 * a trace's path, TIME as kx_parse_time reads it, with an optional sign. After
 * kx_merge_hosts_align. Errors: -EINVAL.
 */
int kx_merge_hosts_offset(struct kx_merge_host *hosts, size_t n, const char *text,
			  struct kx_err *err);
/* The same of trace @which, in ns. */
void kx_merge_hosts_move(struct kx_merge_host *hosts, size_t n, size_t which, int64_t ns);

/* The trace whose CLOCK_BOOTTIME is the shared time. */
size_t kx_merge_hosts_reference(const struct kx_merge_host *hosts, size_t n);
/* What is added to CLOCK_BOOTTIME of trace @which for the shared time, ns. */
int64_t kx_merge_hosts_shift(const struct kx_merge_host *hosts, size_t n, size_t which);
/*
 * Makes all lines: of the shared time, or with @own of each one's CLOCK_BOOTTIME. Errors: -ERANGE
 * (a damaged map, or an offset beyond all clocks).
 */
int kx_merge_hosts_lines(struct kx_merge_host *hosts, size_t n, bool own, struct kx_err *err);

#endif
