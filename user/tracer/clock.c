// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/clock.h"

#include <bpf/btf.h>
#include <cpuid.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "base/kernel_files.h"

#define MAX_READINGS   16384u
#define DENSE_READINGS 1024u
#define MIN_SPACING    100000000ull /* ns between thinned readings */
#define BRACKETS       8
#define MAX_BRACKETS   64
#define WIDE_BRACKET   1000 /* ticks: an interrupt, or a clock that is slow to read */

uint64_t kx_tsc_read(void)
{
	_mm_lfence();
	return __rdtsc();
}

const char *kx_clock_name(enum kx_wire_clock kind)
{
	return kind == KX_CLOCK_KFUNC ? "kfunc" : "ktime";
}

bool kx_clock_is_tsc(const struct kx_clock *c)
{
	return strcmp(c->source, "tsc") == 0;
}

/* Like kx_clock_pair; returns the maximum error in ticks. */
static uint64_t read_pair(uint64_t *ns, uint64_t *ticks)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < BRACKETS || (best > WIDE_BRACKET && i < MAX_BRACKETS); i++) {
		struct timespec ts;
		uint64_t before = kx_tsc_read(), after;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		after = kx_tsc_read();
		if (after - before < best) {
			best = after - before;
			*ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
			*ticks = before + best / 2;
		}
	}
	return best / 2 + 1;
}

void kx_clock_pair(uint64_t *ns, uint64_t *ticks)
{
	read_pair(ns, ticks);
}

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts = { 0 };

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void kx_clock_take_snapshot(struct kx_clock_snapshot *out)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < BRACKETS || (best > WIDE_BRACKET && i < MAX_BRACKETS); i++) {
		struct kx_clock_snapshot s;
		uint64_t before = kx_tsc_read(), after;

		s.monotonic_ns = read_clock(CLOCK_MONOTONIC);
		s.boottime_ns = read_clock(CLOCK_BOOTTIME);
		s.realtime_ns = read_clock(CLOCK_REALTIME);
		after = kx_tsc_read();
		if (after - before >= best)
			continue;
		best = after - before;
		s.tsc = before + best / 2;
		s.error = best / 2 + 1;
		*out = s;
	}
}

/* Where the line through @a and @b is at @ns, in ticks after @a. */
static double line(const struct kx_clock_reading *a, const struct kx_clock_reading *b, uint64_t ns)
{
	return (double)(b->ticks - a->ticks) * (double)(ns - a->ns) / (double)(b->ns - a->ns);
}

static double distance(const struct kx_clock_reading *a, const struct kx_clock_reading *b,
		       const struct kx_clock_reading *c)
{
	return fabs((double)(c->ticks - a->ticks) - line(a, b, c->ns));
}

/* How far @next is from the line that ends at the newest reading. */
static double deviation(const struct kx_clock *c, const struct kx_clock_reading *next)
{
	const struct kx_clock_reading *newest = &c->readings[c->nreadings - 1], *from = newest;

	while (from > c->readings && newest->ns - from->ns < next->ns - newest->ns)
		from--;
	return from == newest ? 0 : distance(from, newest, next);
}

static void set_rates(struct kx_clock *c, size_t from)
{
	for (size_t i = from; i + 1 < c->nreadings; i++) {
		struct kx_clock_reading *r = &c->readings[i];

		r->rate = (double)(r[1].ticks - r->ticks) / (double)(r[1].ns - r->ns);
	}
}

/* Drops old readings where the ones beside them are near; makes room for a quarter at least. */
static void thin(struct kx_clock *c)
{
	struct kx_clock_reading *r = c->readings;

	while (c->nreadings > MAX_READINGS / 4 * 3) {
		size_t dense = c->nreadings - DENSE_READINGS, last = 0;

		c->spacing = c->spacing ? 2 * c->spacing : MIN_SPACING;
		for (size_t i = 1; i < c->nreadings; i++)
			if (i >= dense || r[i + 1].ns - r[last].ns > c->spacing)
				r[++last] = r[i];
		c->nreadings = last + 1;
	}
	set_rates(c, 0);
	c->at = 0;
}

static int make_room(struct kx_clock *c)
{
	struct kx_clock_reading *more;
	size_t room = c->room ? 2 * c->room : DENSE_READINGS;

	if (c->nreadings < c->room)
		return 0;
	if (room > MAX_READINGS) {
		thin(c);
		return 0;
	}
	more = realloc(c->readings, room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->readings = more;
	c->room = room;
	return 0;
}

int kx_clock_add(struct kx_clock *c, uint64_t ns, uint64_t ticks, uint64_t slack)
{
	const struct kx_clock_reading next = { .ns = ns, .ticks = ticks };
	uint64_t error = slack > c->last_slack ? slack : c->last_slack;

	if (c->nreadings) {
		const struct kx_clock_reading *newest = &c->readings[c->nreadings - 1];

		if (ns <= newest->ns || ticks <= newest->ticks)
			return 0;
		error += (uint64_t)deviation(c, &next);
	}
	if (make_room(c))
		return -ENOMEM;
	c->readings[c->nreadings++] = next;
	if (c->nreadings > 1)
		set_rates(c, c->nreadings - 2);
	c->last_slack = slack;
	if (error > c->error)
		c->error = error;
	return 0;
}

void kx_clock_tick(struct kx_clock *c)
{
	uint64_t ns, ticks, slack;

	if (c->kind != KX_CLOCK_KTIME)
		return;
	slack = read_pair(&ns, &ticks);
	/* without memory, the line to the next reading is longer */
	kx_clock_add(c, ns, ticks, slack);
}

/* The newest reading that is not after @ns, or the oldest. */
static size_t find_reading(const struct kx_clock *c, uint64_t ns)
{
	size_t low = 0, high = c->nreadings;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (c->readings[middle].ns <= ns)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint64_t kx_clock_interpolate(struct kx_clock *c, uint64_t ns)
{
	const struct kx_clock_reading *r;
	size_t newest = c->nreadings - 1;

	/* the kernel's fast reading can be some ns ahead of the one for user space */
	for (int i = 0; i < 4 && ns > c->readings[newest].ns; i++) {
		kx_clock_tick(c);
		newest = c->nreadings - 1;
	}
	if (ns >= c->readings[newest].ns)
		return c->readings[newest].ticks;
	if (ns <= c->readings[0].ns)
		return c->readings[0].ticks;
	/* times come in runs between the same readings */
	if (ns < c->readings[c->at].ns || ns >= c->readings[c->at + 1].ns)
		c->at = find_reading(c, ns);
	r = &c->readings[c->at];
	return r->ticks + (uint64_t)((double)(ns - r->ns) * r->rate);
}

static bool kernel_has_kfunc(const char *name)
{
	struct btf *btf;
	bool found;

	/* to find its name first takes a tenth of the time */
	if (!kx_file_contains("/sys/kernel/btf/vmlinux", name))
		return false;
	btf = btf__load_vmlinux_btf();
	found = btf && btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) > 0;
	btf__free(btf);
	return found;
}

/* If the kernel's clock is the TSC, perf's mmap page has ns = ticks * mult >> shift. */
static uint64_t hz_from_perf(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY,
					.exclude_kernel = 1 };
	long page_size = sysconf(_SC_PAGESIZE), fd;
	struct perf_event_mmap_page *page;
	uint64_t hz = 0;

	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return 0;
	page = mmap(NULL, (size_t)page_size, PROT_READ, MAP_SHARED, (int)fd, 0);
	if (page != MAP_FAILED) {
		if (page->cap_user_time && page->time_mult)
			hz = (uint64_t)(1e9 * (double)(1ULL << page->time_shift) / page->time_mult);
		munmap(page, (size_t)page_size);
	}
	close((int)fd);
	return hz;
}

static uint64_t hz_from_cpuid(void)
{
	unsigned a, b, c, d;

	/* Intel SDM, CPUID leaf 0x15: crystal Hz * numerator / denominator */
	if (__get_cpuid_max(0, NULL) >= 0x15) {
		__cpuid(0x15, a, b, c, d);
		if (a && b && c)
			return (uint64_t)c * b / a;
	}
	return 0;
}

static uint64_t hz_from_hypervisor(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 31))
		return 0;
	__cpuid(0x40000000, a, b, c, d);
	if (a < 0x40000010 || a > 0x400000ff)
		return 0;
	/* kHz, the convention that VMware began and KVM's monitors follow */
	__cpuid(0x40000010, a, b, c, d);
	return (uint64_t)a * 1000;
}

uint64_t kx_clock_measured_hz(const struct kx_clock *c)
{
	uint64_t ns, ticks;

	kx_clock_pair(&ns, &ticks);
	return (uint64_t)((double)(ticks - c->first_ticks) * 1e9 / (double)(ns - c->first_ns));
}

#define MEASURE_NS 50000000

static struct {
	uint64_t ns, ticks; /* 0: not begun */
} prepared;

void kx_clock_prepare(void)
{
	if (!prepared.ns)
		kx_clock_pair(&prepared.ns, &prepared.ticks);
}

static void find_frequency(struct kx_clock *c)
{
	static const struct {
		uint64_t (*read)(void);
		const char *name;
	} origins[] = {
		{ hz_from_perf, "perf" },
		{ hz_from_cpuid, "cpuid" },
		{ hz_from_hypervisor, "hypervisor" },
	};
	struct timespec wait = { 0 };
	uint64_t measured, ns, ticks;

	kx_clock_prepare();
	kx_clock_pair(&ns, &ticks);
	if (ns - prepared.ns < MEASURE_NS) {
		wait.tv_nsec = (long)(MEASURE_NS - (ns - prepared.ns));
		nanosleep(&wait, NULL);
		kx_clock_pair(&ns, &ticks);
	}
	/* Accept a value only within 0.2 % of the measured one: CPUID is often incomplete. */
	measured = (uint64_t)((double)(ticks - prepared.ticks) * 1e9 / (double)(ns - prepared.ns));
	for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++) {
		uint64_t hz = origins[i].read();

		if (hz > measured - measured / 500 && hz < measured + measured / 500) {
			c->tsc_hz = hz;
			c->hz_origin = origins[i].name;
			return;
		}
	}
	c->tsc_hz = measured;
	c->hz_origin = "measured";
}

static void find_tsc_kind(struct kx_clock *c)
{
	unsigned a, b, cx, d;

	/* AMD APM and Intel SDM: CPUID 0x80000007 EDX bit 8, invariant TSC: both properties */
	if (__get_cpuid(0x80000007, &a, &b, &cx, &d))
		c->constant_tsc = c->nonstop_tsc = d >> 8 & 1;
}

static void read_source(struct kx_clock *c)
{
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");

	if (f && fgets(c->source, sizeof(c->source), f))
		c->source[strcspn(c->source, "\n")] = 0;
	if (f)
		fclose(f);
}

int kx_clock_new(enum kx_wire_clock want, struct kx_clock **out, struct kx_err *err)
{
	struct kx_clock *c;
	bool has_kfunc = want != KX_CLOCK_KTIME && kernel_has_kfunc("bpf_get_cpu_time_counter");
	uint64_t slack;

	if (want == KX_CLOCK_KFUNC && !has_kfunc)
		return kx_err_set(err, -ENODEV, "the clock 'kfunc' does not work here: this kernel "
						"has no bpf_get_cpu_time_counter");
	c = calloc(1, sizeof(*c));
	if (!c)
		return kx_err_set(err, -ENOMEM, "no memory for the clock");
	c->kind = has_kfunc ? KX_CLOCK_KFUNC : KX_CLOCK_KTIME;
	slack = read_pair(&c->first_ns, &c->first_ticks);
	if (c->kind == KX_CLOCK_KTIME && kx_clock_add(c, c->first_ns, c->first_ticks, slack)) {
		kx_clock_free(c);
		return kx_err_set(err, -ENOMEM, "no memory for the clock");
	}
	read_source(c);
	find_tsc_kind(c);
	find_frequency(c);
	kx_clock_tick(c);
	*out = c;
	return 0;
}

void kx_clock_free(struct kx_clock *c)
{
	if (!c)
		return;
	free(c->readings);
	free(c);
}
