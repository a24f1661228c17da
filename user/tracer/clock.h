// SPDX-License-Identifier: BSD-2-Clause
/*
 * The clock of a recording: which one the BPF programs read, and the conversion of its raw values
 * to TSC ticks as rdtscp returns them on the same machine.
 *
 * BPF programs cannot execute rdtsc. The cycle counter kfunc (recent kernels) returns the TSC
 * itself; the msr/tsc/ perf event returns it less a base per CPU, which kx_clock_calibrate measures
 * to about 0.2 us; CLOCK_MONOTONIC is the last resort and costs precision: NTP adjusts its rate.
 */
#ifndef KX_CLOCK_H
#define KX_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/wire.h"

struct kx_clock_cpu {
	bool present;     /* online when the clock was made */
	int event_fd;     /* msr/tsc/ perf event, -1 if none */
	uint64_t base;    /* ticks to add to the raw value (mod 2^64) */
	uint64_t error;   /* ticks; the base is off by at most this much */
};

struct kx_clock {
	enum kx_wire_clock kind;
	uint64_t tsc_hz;       /* ticks a second */
	const char *hz_origin; /* "perf", "cpuid", "hypervisor" or "measured" */
	bool constant_tsc;     /* CPUID 0x80000007 EDX bit 8, invariant TSC: both flags */
	bool nonstop_tsc;
	char why[160];	       /* why a better clock was not chosen; "" if there is none */
	unsigned ncpus;        /* entries in cpus: highest possible CPU + 1 */
	struct kx_clock_cpu *cpus;
	/* KX_CLOCK_KTIME: the two newest pairs of CLOCK_MONOTONIC ns and ticks, the older first */
	uint64_t ns[2], ticks[2];
	uint64_t first_ns, first_ticks; /* at the start, for kx_clock_measured_hz */
};

/*
 * Chooses the best clock that works here: the kernel's cycle counter kfunc, the msr/tsc/ perf
 * event of every online CPU, or CLOCK_MONOTONIC. @want 0 for the best, else that kind or an error.
 * Opens perf events (kept until kx_clock_free). Errors: -ENODEV, -ENOMEM.
 */
int kx_clock_new(enum kx_wire_clock want, struct kx_clock **out, struct kx_err *err);
void kx_clock_free(struct kx_clock *c);

/* One reading of a CPU's raw clock by a BPF program, between two of ktime. */
struct kx_clock_sample {
	uint64_t clock;
	uint64_t before, after; /* ns, CLOCK_MONOTONIC */
	uint32_t cpu;		/* CPU on which the program ran */
};

/*
 * Measures each CPU's base (KX_CLOCK_PERF; else nothing is done): calls @sample 2000 times on that
 * CPU, which fills in *@out and returns 0 or a negative errno. Restores the caller's CPU affinity.
 * Errors: -EIO (a CPU's clock cannot be read), -ENOMEM.
 */
int kx_clock_calibrate(struct kx_clock *c, int (*sample)(void *ctx, unsigned cpu,
							 struct kx_clock_sample *out),
		       void *ctx, struct kx_err *err);

/* Takes a new pair for KX_CLOCK_KTIME, every 0.1 s at most; call it before each pass over the
 * rings. */
void kx_clock_tick(struct kx_clock *c);

/* TSC ticks of a raw value read on @cpu. */
static inline uint64_t kx_clock_to_tsc(const struct kx_clock *c, uint16_t cpu, uint64_t raw)
{
	if (c->kind == KX_CLOCK_PERF)
		return cpu < c->ncpus ? raw + c->cpus[cpu].base : raw;
	if (c->kind == KX_CLOCK_KFUNC)
		return raw;
	return c->ticks[1] + (uint64_t)(int64_t)((double)(int64_t)(raw - c->ns[1]) *
						  (double)(c->ticks[1] - c->ticks[0]) /
						  (double)(c->ns[1] - c->ns[0]));
}

/* rdtscp on the current CPU, ordered after earlier loads. */
uint64_t kx_rdtscp(void);

/* CLOCK_MONOTONIC in ns, and the ticks at the same time (the shortest of 8 brackets). */
void kx_clock_pair(uint64_t *ns, uint64_t *ticks);

/* Ticks a second since kx_clock_new, measured against CLOCK_MONOTONIC. */
uint64_t kx_clock_measured_hz(const struct kx_clock *c);

/* "kfunc", "msr/tsc/ perf event" or "ktime". */
const char *kx_clock_name(enum kx_wire_clock kind);

#endif
