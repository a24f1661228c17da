// SPDX-License-Identifier: BSD-2-Clause
/*
 * The clock of a recording: which one the BPF programs read, and the conversion of its values to TSC
 * ticks as rdtsc returns them on the same machine.
 *
 * BPF programs cannot execute rdtsc. The cycle counter kfunc (recent kernels) returns the TSC
 * itself. Everywhere else they read CLOCK_MONOTONIC, which all CPUs share and which the kernel
 * derives from the TSC at a rate that NTP adjusts. User space reads both at the same time, at every
 * pass over the rings; between two readings the conversion is a straight line, so it is continuous
 * and keeps the order of times. A time after the newest reading causes a new one.
 *
 * How far a converted time can be off is estimated at each reading, see kx_clock_add. Cost: a reading
 * takes about 0.5 us, a conversion about 2 ns.
 */
#ifndef KX_CLOCK_H
#define KX_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/wire.h"

/* CLOCK_MONOTONIC and the TSC at one moment. */
struct kx_clock_reading {
	uint64_t ns, ticks;
	double rate; /* ticks per ns up to the next reading */
};

struct kx_clock {
	enum kx_wire_clock kind;
	uint64_t tsc_hz;       /* ticks a second */
	const char *hz_origin; /* "perf", "cpuid", "hypervisor" or "measured" */
	bool constant_tsc;     /* CPUID 0x80000007 EDX bit 8, invariant TSC: both flags */
	bool nonstop_tsc;
	char source[32];       /* what the kernel's clocks are read from: "tsc", "kvm-clock"; "" if unknown */
	/* KX_CLOCK_KTIME: in order of time. The newest 1024 are complete; older ones, which only entries
	 * of long calls under --min-duration need, are thinned out so that memory stays at 384 KiB. */
	struct kx_clock_reading *readings;
	size_t nreadings, room;
	size_t at;             /* of the reading before the newest converted time */
	uint64_t spacing;      /* ns between thinned readings */
	uint64_t last_slack;   /* of the newest reading */
	uint64_t error;        /* ticks; the largest estimate so far */
	uint64_t first_ns, first_ticks; /* at the start, for kx_clock_measured_hz */
};

/*
 * Begins to measure the TSC's frequency, which takes 50 ms: what a later kx_clock_new waits for if this was not called
 * that long before.
 */
void kx_clock_prepare(void);

/*
 * Chooses the best clock that works here: the kernel's cycle counter kfunc, or CLOCK_MONOTONIC.
 * @want 0 for the best, else that kind or an error. Takes 50 ms. Errors: -ENODEV, -ENOMEM.
 */
int kx_clock_new(enum kx_wire_clock want, struct kx_clock **out, struct kx_err *err);
void kx_clock_free(struct kx_clock *c);

/* Takes a reading if the kind needs one. Call it before each pass over the rings. */
void kx_clock_tick(struct kx_clock *c);

/*
 * Adds a reading, which is off by at most @slack ticks; one that is not later than the newest in both
 * clocks is ignored. The estimate of the error is that slack plus the distance of the reading from
 * the continuation of the line before it, over as long a time: where the rate changes between two
 * readings, the line between them is off by less than that. Returns 0 or -ENOMEM; the clock then
 * keeps its readings.
 */
int kx_clock_add(struct kx_clock *c, uint64_t ns, uint64_t ticks, uint64_t slack);

/* TSC ticks at @ns; takes a reading if @ns is after the newest one. */
uint64_t kx_clock_interpolate(struct kx_clock *c, uint64_t ns);

/* TSC ticks of a value that a BPF program has read. */
static inline uint64_t kx_clock_to_tsc(struct kx_clock *c, uint64_t raw)
{
	return c->kind == KX_CLOCK_KFUNC ? raw : kx_clock_interpolate(c, raw);
}

/* Ticks in ns. */
static inline double kx_clock_error_ns(const struct kx_clock *c)
{
	return (double)c->error * 1e9 / (double)c->tsc_hz;
}

/* rdtsc on the current CPU, ordered after earlier loads; not all machines have rdtscp. */
uint64_t kx_tsc_read(void);

/* CLOCK_MONOTONIC in ns, and the ticks at the same time (the shortest of some brackets). */
void kx_clock_pair(uint64_t *ns, uint64_t *ticks);

/* The clocks that other logs and traces use, at one moment: each is off by at most @error ticks. */
struct kx_clock_snapshot {
	uint64_t tsc;
	uint64_t monotonic_ns, boottime_ns, realtime_ns; /* of clock_gettime(2) */
	uint64_t error;
};

/* The shortest of some brackets; takes a few us. */
void kx_clock_take_snapshot(struct kx_clock_snapshot *out);

/* Ticks a second since kx_clock_new, measured against CLOCK_MONOTONIC. */
uint64_t kx_clock_measured_hz(const struct kx_clock *c);

/* "kfunc" or "ktime". */
const char *kx_clock_name(enum kx_wire_clock kind);

/* Whether the kernel derives its clocks from the TSC; if not, they are less exact and slower to read. */
bool kx_clock_is_tsc(const struct kx_clock *c);

#endif
