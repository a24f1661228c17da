// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collect/flight_store.h"

#define NCPUS 3
#define MOST  200000

/* The result of a replay. */
struct seen {
	uint64_t clock[MOST], last_of_cpu[NCPUS], watermark;
	uint32_t func[MOST];
	size_t n, watermarks;
	int stop_at; /* fail at this record; -1: never */
	size_t held, most_held; /* records replayed, and not yet older than a watermark */
	uint64_t waiting[MOST];
};

static struct seen *new_seen(void)
{
	struct seen *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->stop_at = -1;
	return s;
}

static struct kx_flight_store *new_store(uint64_t bytes)
{
	/* CPU 1 is offline */
	const unsigned char online[NCPUS] = { 1, 0, 1 };
	struct kx_flight_store *s = NULL;
	struct kx_err err = { 0 };

	if (kx_flight_store_new(online, NCPUS, bytes, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

static void put(struct kx_flight_store *s, unsigned cpu, uint64_t tsc, uint32_t func,
		uint8_t words)
{
	struct kx_wire_record rec = { .clock = 77,
				      .sp = tsc ^ func,
				      .tid = cpu,
				      .func = func,
				      .cpu = (uint16_t)cpu,
				      .kind = KX_EVENT_ENTRY,
				      .words = words };
	uint64_t payload[KX_WIRE_MAX_WORDS];

	for (unsigned i = 0; i < words; i++)
		payload[i] = tsc * 10 + i;
	kx_flight_store_put(s, cpu, &rec, tsc, payload);
}

static int on_record(void *ctx, const struct kx_wire_record *rec, const uint64_t *payload)
{
	struct seen *seen = ctx;

	if (seen->stop_at == (int)seen->n)
		return -EIO;
	assert_true(rec->clock >= seen->watermark);
	assert_int_equal(rec->sp, rec->clock ^ rec->func);
	assert_int_equal(rec->kind, KX_EVENT_ENTRY);
	assert_int_equal(rec->tid, rec->cpu);
	for (unsigned i = 0; i < rec->words; i++)
		assert_int_equal(payload[i], rec->clock * 10 + i);
	seen->clock[seen->n] = rec->clock;
	seen->func[seen->n++] = rec->func;
	seen->waiting[seen->held++] = rec->clock;
	if (seen->held > seen->most_held)
		seen->most_held = seen->held;
	return 0;
}

static int on_watermark(void *ctx, uint64_t tsc)
{
	struct seen *seen = ctx;
	size_t left = 0;

	assert_true(tsc >= seen->watermark);
	seen->watermark = tsc;
	seen->watermarks++;
	for (size_t i = 0; i < seen->held; i++)
		if (seen->waiting[i] >= tsc)
			seen->waiting[left++] = seen->waiting[i];
	seen->held = left;
	return 0;
}

static int replay(const struct kx_flight_store *s, uint64_t from, uint64_t to, struct seen *seen)
{
	const struct kx_flight_reader reader = { on_record, on_watermark, seen };

	return kx_flight_store_replay(s, from, to, &reader);
}

static void test_all_kept(void **state)
{
	struct kx_flight_store *s = new_store(1 << 20);
	struct seen *seen = new_seen();
	struct kx_flight_stats stats;

	(void)state;
	for (uint32_t i = 1; i <= 1000; i++)
		put(s, i % 2 ? 0 : 2, i, i, (uint8_t)(i % (KX_WIRE_MAX_WORDS + 1)));
	kx_flight_store_stats(s, &stats);
	assert_int_equal(stats.kept, 1000);
	assert_int_equal(stats.overwritten, 0);
	assert_int_equal(stats.bytes_per_cpu, 1 << 20);
	assert_int_equal(kx_flight_store_complete_from(s), 0);
	assert_int_equal(replay(s, 0, UINT64_MAX, seen), 0);
	assert_int_equal(seen->n, 1000);
	assert_int_equal(seen->held, 0);
	free(seen);
	kx_flight_store_free(s);
}

static void test_empty(void **state)
{
	struct kx_flight_store *s = new_store(KX_FLIGHT_MIN_BYTES);
	struct seen *seen = new_seen();

	(void)state;
	assert_int_equal(replay(s, 0, UINT64_MAX, seen), 0);
	assert_int_equal(seen->n, 0);
	put(s, 0, 5, 1, 0);
	assert_int_equal(replay(s, 6, UINT64_MAX, seen), 0);
	seen->watermark = 0;
	assert_int_equal(replay(s, 0, 5, seen), 0);
	assert_int_equal(seen->n, 0);
	seen->watermark = 0;
	assert_int_equal(replay(s, 5, 6, seen), 0);
	assert_int_equal(seen->n, 1);
	free(seen);
	kx_flight_store_free(s);
}

/* If more records come than fit, the newest are kept: at least as many bytes as were requested. */
static void test_overwritten(void **state)
{
	const uint32_t total = 50000, fits = KX_FLIGHT_MIN_BYTES / sizeof(struct kx_wire_record);
	struct kx_flight_store *s = new_store(KX_FLIGHT_MIN_BYTES);
	struct seen *seen = new_seen();
	struct kx_flight_stats stats, before;

	(void)state;
	kx_flight_store_stats(s, &before);
	for (uint32_t i = 1; i <= total; i++)
		put(s, 0, i, i, 0);
	kx_flight_store_stats(s, &stats);
	assert_int_equal(stats.bytes, before.bytes);
	assert_int_equal(stats.kept + stats.overwritten, total);
	assert_in_range(stats.kept, fits, fits + fits / 8);
	assert_int_equal(kx_flight_store_complete_from(s), stats.overwritten + 1);
	assert_int_equal(replay(s, 0, UINT64_MAX, seen), 0);
	assert_int_equal(seen->n, stats.kept);
	for (size_t i = 0; i < seen->n; i++)
		assert_int_equal(seen->clock[i], stats.overwritten + 1 + i);
	free(seen);
	kx_flight_store_free(s);
}

/* A busy CPU has overwritten records of a time that an idle one still has: complete_from is later. */
static void test_complete_from(void **state)
{
	struct kx_flight_store *s = new_store(KX_FLIGHT_MIN_BYTES);
	struct seen *seen = new_seen();
	uint64_t from;

	(void)state;
	for (uint32_t i = 1; i <= 20000; i++) {
		put(s, 0, i * 2, 1, 0);
		if (i % 100 == 0)
			put(s, 2, i * 2 + 1, 2, 0);
	}
	from = kx_flight_store_complete_from(s);
	assert_in_range(from, 30000, 40000);
	assert_int_equal(replay(s, from, UINT64_MAX, seen), 0);
	for (size_t i = 0; i < seen->n; i++)
		assert_true(seen->clock[i] >= from);
	assert_int_equal(seen->n, (40000 - from) / 2 + 1 + (40001 - from) / 200 + 1);
	free(seen);
	kx_flight_store_free(s);
}

/* A ring is only nearly in order of time: records before a watermark are still older than it. */
static void test_disorder(void **state)
{
	struct kx_flight_store *s = new_store(KX_FLIGHT_MIN_BYTES * 4);
	struct seen *seen = new_seen();
	uint32_t seed = 1;

	(void)state;
	for (uint32_t i = 1; i <= 60000; i++) {
		seed = seed * 1103515245 + 12345;
		put(s, seed >> 16 & 2, 100 + i + (seed >> 20) % 50, i, (uint8_t)((seed >> 26) % 4));
	}
	assert_int_equal(replay(s, kx_flight_store_complete_from(s), 60000, seen), 0);
	assert_true(seen->n > 1000);
	assert_true(seen->watermarks > 10);
	assert_int_equal(seen->held, 0);
	/* only a few records wait at a time */
	assert_true(seen->most_held < seen->n / 2);
	free(seen);
	kx_flight_store_free(s);
}

static void test_no_room(void **state)
{
	struct kx_flight_store *s = new_store(KX_FLIGHT_MIN_BYTES);
	struct kx_flight_stats stats;

	(void)state;
	put(s, 1, 500, 1, 0);
	put(s, NCPUS + 5, 400, 1, 0);
	kx_flight_store_stats(s, &stats);
	assert_int_equal(stats.kept, 0);
	assert_int_equal(stats.overwritten, 2);
	assert_int_equal(kx_flight_store_complete_from(s), 501);
	kx_flight_store_free(s);
}

static void test_reader_fails(void **state)
{
	struct kx_flight_store *s = new_store(KX_FLIGHT_MIN_BYTES);
	struct seen *seen = new_seen();

	(void)state;
	for (uint32_t i = 1; i <= 500; i++)
		put(s, 0, i, i, 0);
	seen->stop_at = 100;
	assert_int_equal(replay(s, 0, UINT64_MAX, seen), -EIO);
	assert_int_equal(seen->n, 100);
	free(seen);
	kx_flight_store_free(s);
}

static void test_too_large(void **state)
{
	const unsigned char online[2] = { 1, 1 };
	struct kx_flight_store *s = NULL;
	struct kx_err err = { 0 };

	(void)state;
	assert_int_equal(kx_flight_store_new(online, 2, 1ull << 46, &s, &err), -ENOMEM);
	assert_null(s);
	assert_non_null(strstr(err.text, "67108864 MiB"));
	assert_non_null(strstr(err.text, "2 CPUs"));
}

static void test_default_size(void **state)
{
	(void)state;
	assert_in_range(kx_flight_store_default_bytes(1), KX_FLIGHT_MIN_BYTES, 64 << 20);
	assert_int_equal(kx_flight_store_default_bytes(1u << 31), KX_FLIGHT_MIN_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kept),      cmocka_unit_test(test_empty),
		cmocka_unit_test(test_overwritten),   cmocka_unit_test(test_complete_from),
		cmocka_unit_test(test_disorder),      cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_reader_fails),  cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_default_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
