// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/clock.h"

#include <bpf/btf.h>
#include <cpuid.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <bpf/libbpf.h>

#include "base/kernel_files.h"

#define SAMPLES_PER_CPU 2000

uint64_t kx_rdtscp(void)
{
	unsigned aux;

	return __rdtscp(&aux);
}

const char *kx_clock_name(enum kx_wire_clock kind)
{
	switch (kind) {
	case KX_CLOCK_KFUNC:
		return "kfunc";
	case KX_CLOCK_PERF:
		return "msr/tsc/ perf event";
	default:
		return "ktime";
	}
}

/* Like kx_clock_pair; returns the maximum error in ticks. */
static uint64_t read_pair(uint64_t *ns, uint64_t *ticks)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		struct timespec ts;
		uint64_t before = kx_rdtscp(), after;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		after = kx_rdtscp();
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

static bool kernel_has_kfunc(const char *name)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool found = btf && btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) > 0;

	btf__free(btf);
	return found;
}

static int open_tsc_event(unsigned cpu)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .config = 0 /* tsc */ };
	int type = kx_pmu_type("msr");
	long fd;

	if (type < 0)
		return type;
	attr.type = (uint32_t)type;
	fd = syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

static bool cpu_is_online(unsigned cpu)
{
	char path[64];
	uint64_t online;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	if (kx_read_number(path, &online) == 0)
		return online != 0;
	/* CPUs that cannot go offline have no such file */
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u", cpu);
	return access(path, F_OK) == 0;
}

static int open_tsc_events(struct kx_clock *c)
{
	for (unsigned cpu = 0; cpu < c->ncpus; cpu++) {
		int fd;

		if (!c->cpus[cpu].present)
			continue;
		fd = open_tsc_event(cpu);
		if (fd < 0) {
			snprintf(c->why, sizeof(c->why),
				 "the msr/tsc/ perf event cannot be opened on CPU %u: %s", cpu,
				 strerror(-fd));
			return fd;
		}
		c->cpus[cpu].event_fd = fd;
	}
	return 0;
}

static void close_tsc_events(struct kx_clock *c)
{
	for (unsigned cpu = 0; cpu < c->ncpus; cpu++) {
		if (c->cpus[cpu].event_fd >= 0)
			close(c->cpus[cpu].event_fd);
		c->cpus[cpu].event_fd = -1;
	}
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
	struct timespec wait = { .tv_nsec = 50000000 };
	uint64_t measured;

	/* Accept a value only within 0.2 % of the measured one: CPUID is often incomplete. */
	nanosleep(&wait, NULL);
	measured = kx_clock_measured_hz(c);
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

int kx_clock_new(enum kx_wire_clock want, struct kx_clock **out, struct kx_err *err)
{
	int ncpus = libbpf_num_possible_cpus();
	struct kx_clock *c;

	if (ncpus < 0)
		return kx_err_set(err, ncpus, "the number of CPUs cannot be read from sysfs: %s",
				  strerror(-ncpus));
	c = calloc(1, sizeof(*c));
	if (!c || !(c->cpus = calloc((size_t)ncpus, sizeof(*c->cpus)))) {
		free(c);
		return kx_err_set(err, -ENOMEM, "no memory for the clock of %d CPUs", ncpus);
	}
	c->ncpus = (unsigned)ncpus;
	for (unsigned cpu = 0; cpu < c->ncpus; cpu++) {
		c->cpus[cpu].event_fd = -1;
		c->cpus[cpu].present = cpu_is_online(cpu);
	}
	kx_clock_pair(&c->first_ns, &c->first_ticks);
	if ((!want || want == KX_CLOCK_KFUNC) && kernel_has_kfunc("bpf_get_cpu_time_counter")) {
		c->kind = KX_CLOCK_KFUNC;
	} else if ((!want || want == KX_CLOCK_PERF) && open_tsc_events(c) == 0) {
		c->kind = KX_CLOCK_PERF;
	} else {
		close_tsc_events(c);
		c->kind = KX_CLOCK_KTIME;
	}
	if (want && c->kind != want) {
		int code = kx_err_set(err, -ENODEV, "the clock '%s' does not work here%s%s",
				      kx_clock_name(want), c->why[0] ? ": " : "", c->why);
		kx_clock_free(c);
		return code;
	}
	find_tsc_kind(c);
	find_frequency(c);
	c->ns[0] = c->first_ns;
	c->ticks[0] = c->first_ticks;
	kx_clock_pair(&c->ns[1], &c->ticks[1]);
	*out = c;
	return 0;
}

void kx_clock_free(struct kx_clock *c)
{
	if (!c)
		return;
	close_tsc_events(c);
	free(c->cpus);
	free(c);
}

void kx_clock_tick(struct kx_clock *c)
{
	uint64_t ns, ticks;

	if (c->kind != KX_CLOCK_KTIME)
		return;
	kx_clock_pair(&ns, &ticks);
	/* over a short interval the error of the readings would distort the rate */
	if (ns - c->ns[1] < 100000000)
		return;
	c->ns[0] = c->ns[1];
	c->ticks[0] = c->ticks[1];
	c->ns[1] = ns;
	c->ticks[1] = ticks;
}

/* A CPU's base is between origin + low and origin + high. */
struct bounds {
	uint64_t origin;
	int64_t low, high;
	bool known;
};

/* The clock was at @raw at some time between the ticks @before and @after. */
static void narrow(struct bounds *b, uint64_t raw, uint64_t before, uint64_t after)
{
	int64_t low, high;

	if (!b->known)
		*b = (struct bounds){ before - raw, INT64_MIN, INT64_MAX, true };
	low = (int64_t)(before - raw - b->origin);
	high = (int64_t)(after - raw - b->origin);
	b->low = low > b->low ? low : b->low;
	b->high = high < b->high ? high : b->high;
}

/*
 * Each sample is bracketed twice: by rdtscp in user space, and by two readings of ktime in the
 * kernel, which the vDSO relates to rdtscp. Many samples narrow the bounds of the base; what
 * remains is the shortest delay into the program plus the shortest delay out of it, and the error
 * is half of that.
 */
static int calibrate_cpu(struct kx_clock *c, unsigned cpu,
			 int (*sample)(void *, unsigned, struct kx_clock_sample *), void *ctx,
			 struct kx_err *err)
{
	double ticks_per_ns = (double)c->tsc_hz * 1e-9;
	struct bounds b = { 0 };

	for (int i = 0; i < SAMPLES_PER_CPU; i++) {
		struct kx_clock_sample s;
		uint64_t ns, ticks, slack = read_pair(&ns, &ticks), before = kx_rdtscp(), after;
		int code = sample(ctx, cpu, &s);

		after = kx_rdtscp();
		if (code)
			return kx_err_set(err, -EIO, "the clock of CPU %u cannot be read (%s)", cpu,
					  strerror(code < 0 ? -code : EIO));
		if (s.cpu != cpu)
			continue;
		narrow(&b, s.clock, before, after);
		narrow(&b, s.clock,
		       ticks + (uint64_t)(int64_t)((double)(int64_t)(s.before - ns) * ticks_per_ns) -
			       slack,
		       ticks + (uint64_t)(int64_t)((double)(int64_t)(s.after - ns) * ticks_per_ns) +
			       slack);
	}
	if (!b.known)
		return kx_err_set(err, -EIO, "no program can be run on CPU %u to read its clock",
				  cpu);
	c->cpus[cpu].base = b.origin + (uint64_t)(b.low + (b.high - b.low) / 2);
	/* NTP may step the vDSO's clock by some ns: then low can exceed high slightly */
	c->cpus[cpu].error = (uint64_t)llabs(b.high - b.low) / 2;
	return 0;
}

int kx_clock_calibrate(struct kx_clock *c, int (*sample)(void *ctx, unsigned cpu,
							 struct kx_clock_sample *out),
		       void *ctx, struct kx_err *err)
{
	cpu_set_t *old, *one;
	size_t size;
	int ret = 0;

	if (c->kind != KX_CLOCK_PERF)
		return 0;
	size = CPU_ALLOC_SIZE(c->ncpus);
	old = CPU_ALLOC(c->ncpus);
	one = CPU_ALLOC(c->ncpus);
	if (!old || !one) {
		CPU_FREE(old);
		CPU_FREE(one);
		return kx_err_set(err, -ENOMEM, "no memory for a set of %u CPUs", c->ncpus);
	}
	if (sched_getaffinity(0, size, old))
		CPU_ZERO_S(size, old);
	for (unsigned cpu = 0; cpu < c->ncpus && !ret; cpu++) {
		if (!c->cpus[cpu].present)
			continue;
		CPU_ZERO_S(size, one);
		CPU_SET_S(cpu, size, one);
		/* if that fails, the test run is started by an interrupt from this CPU, which is less exact */
		sched_setaffinity(0, size, one);
		ret = calibrate_cpu(c, cpu, sample, ctx, err);
	}
	if (CPU_COUNT_S(size, old))
		sched_setaffinity(0, size, old);
	CPU_FREE(old);
	CPU_FREE(one);
	return ret;
}
