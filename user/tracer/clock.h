// SPDX-License-Identifier: BSD-2-Clause
/*
 * The clock of a recording: which one the BPF programs read, and how its raw
 * values become TSC ticks as rdtscp shows them on the same machine.
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
	bool constant_tsc;     /* as the CPU says: CPUID 0x80000007 and family */
	bool nonstop_tsc;
	char why[160];         /* why not a better one; "" for the best */
	unsigned ncpus;        /* entries in cpus: highest possible CPU + 1 */
	struct kx_clock_cpu *cpus;
	/* KX_CLOCK_KTIME: the two newest pairs of (CLOCK_MONOTONIC ns, ticks) */
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
	uint32_t cpu;           /* where it ran */
};

/*
 * Learns each CPU's base: calls @sample many times there, which fills its argument; it returns 0 or
 * a negative errno. Restores the caller's CPU affinity. Errors: -EIO (a CPU's clock could not be
 * read).
 */
int kx_clock_calibrate(struct kx_clock *c, int (*sample)(void *ctx, unsigned cpu,
							 struct kx_clock_sample *out),
		       void *ctx, struct kx_err *err);

/* Takes a new pair for KX_CLOCK_KTIME; call it before each drain of the rings. */
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

/* CLOCK_MONOTONIC in ns, and the ticks at the same moment (smallest of several brackets). */
void kx_clock_pair(uint64_t *ns, uint64_t *ticks);

/* Ticks a second over the whole life of @c so far, against CLOCK_MONOTONIC. */
uint64_t kx_clock_measured_hz(const struct kx_clock *c);

/* "kfunc", "msr/tsc/ perf event" or "ktime". */
const char *kx_clock_name(enum kx_wire_clock kind);

#endif
