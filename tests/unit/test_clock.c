// SPDX-License-Identifier: BSD-2-Clause
/* Raw clocks to TSC: the arithmetic, and a calibration against a clock whose base is known. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/clock.h"

static void test_kfunc(void **state)
{
	const struct kx_clock c = { .kind = KX_CLOCK_KFUNC };

	(void)state;
	assert_true(kx_clock_to_tsc(&c, 0, 12345) == 12345);
	assert_true(kx_clock_to_tsc(&c, 999, UINT64_MAX) == UINT64_MAX);
}

static void test_perf(void **state)
{
	struct kx_clock_cpu cpus[2] = { { .base = 1000 }, { .base = (uint64_t)-500 } };
	const struct kx_clock c = { .kind = KX_CLOCK_PERF, .ncpus = 2, .cpus = cpus };

	(void)state;
	assert_true(kx_clock_to_tsc(&c, 0, 5) == 1005);
	assert_true(kx_clock_to_tsc(&c, 1, 700) == 200); /* bases count modulo 2^64 */
	assert_true(kx_clock_to_tsc(&c, 0, UINT64_MAX - 9) == 990);
	assert_true(kx_clock_to_tsc(&c, 2, 700) == 700); /* a CPU without a base */
}

static void test_ktime(void **state)
{
	/* 2 ticks a ns */
	const struct kx_clock c = { .kind = KX_CLOCK_KTIME,
				    .ns = { 1000, 2000 },
				    .ticks = { 5000, 7000 } };

	(void)state;
	assert_true(kx_clock_to_tsc(&c, 0, 2000) == 7000);
	assert_true(kx_clock_to_tsc(&c, 0, 1500) == 6000);
	assert_true(kx_clock_to_tsc(&c, 7, 1000) == 5000);
	assert_true(kx_clock_to_tsc(&c, 0, 2500) == 8000); /* younger than the newest pair */
	assert_true(kx_clock_to_tsc(&c, 0, 500) == 4000);  /* older than both */
}

/* A new pair is taken only if the newest is 0.1 s old, and only for KX_CLOCK_KTIME. */
static void test_tick(void **state)
{
	struct kx_clock c = { .kind = KX_CLOCK_KTIME }, before;
	uint64_t ns, ticks;

	(void)state;
	kx_clock_pair(&ns, &ticks);
	c.ns[0] = ns - 2000000000;
	c.ns[1] = ns - 1000000000;
	c.ticks[0] = ticks - 200;
	c.ticks[1] = ticks - 100;
	before = c;
	kx_clock_tick(&c);
	assert_true(c.ns[0] == before.ns[1] && c.ticks[0] == before.ticks[1]);
	assert_true(c.ns[1] >= ns && c.ticks[1] >= ticks);
	/* in the future, so that no delay makes it old */
	c.ns[1] = ns + 3600000000000;
	before = c;
	c.kind = KX_CLOCK_PERF;
	kx_clock_tick(&c);
	assert_memory_equal(c.ns, before.ns, sizeof(c.ns));
	assert_memory_equal(c.ticks, before.ticks, sizeof(c.ticks));
}

/* A CPU's clock: TSC less this. */
static uint64_t base_of(unsigned cpu)
{
	return cpu ? 0x123456789abcULL : (uint64_t)-77777;
}

struct fake {
	unsigned samples;
	int fail;	/* what the sample returns */
	bool elsewhere; /* it always runs on another CPU */
};

static int sample(void *ctx, unsigned cpu, struct kx_clock_sample *out)
{
	struct fake *f = ctx;
	uint64_t ns, ticks;

	f->samples++;
	kx_clock_pair(&ns, &ticks);
	/* the kernel's two readings are too far apart to be used */
	out->before = ns - 1000000000;
	out->after = ns + 1000000000;
	out->cpu = f->elsewhere ? cpu + 1 : cpu;
	out->clock = kx_rdtscp() - base_of(cpu);
	return f->fail;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	int64_t d = (int64_t)(a - b);

	return (uint64_t)(d < 0 ? -d : d);
}

static void test_calibration(void **state)
{
	struct kx_clock_cpu cpus[2] = { { .present = true }, { .present = true } };
	struct kx_clock c = {
		.kind = KX_CLOCK_PERF, .tsc_hz = 2000000000, .ncpus = 2, .cpus = cpus
	};
	struct fake f = { 0 };
	struct kx_err err = { 0 };
	cpu_set_t before, after;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(kx_clock_calibrate(&c, sample, &f, &err), 0);
	assert_int_equal(f.samples, 4000);
	for (unsigned cpu = 0; cpu < 2; cpu++)
		assert_true(distance(cpus[cpu].base, base_of(cpu)) <= cpus[cpu].error + 1);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

static void test_calibration_fails(void **state)
{
	struct kx_clock_cpu cpus[2] = { { .present = false, .base = 5 }, { .present = true } };
	struct kx_clock c = {
		.kind = KX_CLOCK_PERF, .tsc_hz = 2000000000, .ncpus = 2, .cpus = cpus
	};
	struct fake f = { .fail = -EPERM };
	struct kx_err err = { 0 };

	(void)state;
	assert_int_equal(kx_clock_calibrate(&c, sample, &f, &err), -EIO);
	assert_non_null(strstr(err.text, "CPU 1"));
	assert_int_equal(f.samples, 1);
	f = (struct fake){ .elsewhere = true };
	assert_int_equal(kx_clock_calibrate(&c, sample, &f, &err), -EIO);
	assert_int_equal(f.samples, 2000);
	assert_true(cpus[0].base == 5); /* it is not there */
	c.kind = KX_CLOCK_KFUNC;	/* needs no calibration */
	assert_int_equal(kx_clock_calibrate(&c, sample, &f, &err), 0);
	assert_int_equal(f.samples, 2000);
}

static void test_new(void **state)
{
	struct kx_clock *c = NULL;
	struct kx_err err = { 0 };

	(void)state;
	assert_int_equal(kx_clock_new(KX_CLOCK_KTIME, &c, &err), 0);
	assert_int_equal(c->kind, KX_CLOCK_KTIME);
	assert_true(c->tsc_hz > 0);
	assert_non_null(c->hz_origin);
	assert_true((long)c->ncpus >= sysconf(_SC_NPROCESSORS_CONF));
	assert_true(c->cpus[0].present);
	assert_int_equal(c->cpus[0].event_fd, -1);
	assert_true(c->ns[1] > c->ns[0] && c->ticks[1] > c->ticks[0]);
	kx_clock_free(c);
	assert_string_equal(kx_clock_name(KX_CLOCK_KFUNC), "kfunc");
	assert_string_equal(kx_clock_name(KX_CLOCK_PERF), "msr/tsc/ perf event");
	assert_string_equal(kx_clock_name(KX_CLOCK_KTIME), "ktime");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kfunc),	    cmocka_unit_test(test_perf),
		cmocka_unit_test(test_ktime),	    cmocka_unit_test(test_tick),
		cmocka_unit_test(test_calibration), cmocka_unit_test(test_calibration_fails),
		cmocka_unit_test(test_new),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
