// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which clock the trace's times are of, in Perfetto's terms.
 *
 * The trace counts TSC ticks at a fixed rate; its session has snapshots of other clocks from the
 * start to the end of the recording. Where it has them, times are CLOCK_BOOTTIME's at the first
 * record, and from there on the trace's own ticks, so that durations are those of all other
 * formats: on a long recording they leave CLOCK_BOOTTIME by as much as the kernel adjusts its
 * clock's rate. Clock snapshots, at the first and at the last record and where the session has
 * others in between, say what CLOCK_MONOTONIC and CLOCK_REALTIME were at these times. Perfetto
 * needs BOOTTIME: it takes times of ftrace events (cpu_tracks.h) for that.
 *
 * Traces of older recorders know only CLOCK_MONOTONIC at the start. That is then the trace's clock,
 * and is left unnamed if there are ftrace events, which must have the same times. All others begin
 * at 0.
 */
#ifndef KX_PERFETTO_CLOCKS_H
#define KX_PERFETTO_CLOCKS_H

#include "exporters/perfetto/packets.h"
#include "trace/clock_snapshots.h"

struct kx_pf_clocks {
	bool has_boottime, has_monotonic;
	struct kx_snapshots all;	/* of the session */
	struct kx_snapshot first, last; /* at the first and the last record, if has_boottime */
};

/* Also sets o->first_ns. */
void kx_pf_find_clocks(struct kx_pf_out *o, struct kx_pf_clocks *out);
/* Adds the clock of all times to the first packet, which is open. */
void kx_pf_put_clocks(struct kx_pf_out *o, const struct kx_pf_clocks *clocks);
/* Packets with the clocks at the snapshots after it, and at the last record, if they are known.
 * Errors: as kx_pf_end. */
int kx_pf_write_later_clocks(struct kx_pf_out *o, const struct kx_pf_clocks *clocks);

/* A packet with the session's labels, if it has any. Errors: as kx_pf_end, -ENOMEM. */
int kx_pf_write_labels(struct kx_pf_out *o);
/* A packet with the host's name and the recording's kernel, if the session has it and it is of
 * version 5 or later:
 * *@known. Errors: as kx_pf_end. */
int kx_pf_write_system(struct kx_pf_out *o, bool *known);

#endif
