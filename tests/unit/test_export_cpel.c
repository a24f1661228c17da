// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "exporters/cpel/file.h"
#include "cpel_rig.h"
#include "export_run.h"

static const char *const document[] = { "cpel-document", NULL };
static const char *const little[] = { "cpel-document", "cpel-little", NULL };

static uint32_t le32(const struct exported *e, size_t at)
{
	return __builtin_bswap32(be32(e, at));
}

/* Offsets in the string table, in the order of the names' first use. */
enum { AT_IDS = 11, AT_OUTER = 25, AT_INNER = 31 };

static const struct event tiny_events[] = {
	{ 2001, 5, 3 },         { 2001, 1, AT_IDS },   { 2001, 3, AT_OUTER },
	{ 4001, 3, AT_INNER },  { 5001, 2, AT_IDS },   { 5001, 5, 65535 },
	{ 6001, 1, AT_IDS },    { 6001, 4, AT_INNER }, { 9002, 4, AT_OUTER },
};

#define NTINY (sizeof(tiny_events) / sizeof(tiny_events[0]))

static void check_tiny_events(const struct exported *e, size_t at, bool ns)
{
	for (size_t i = 0; i < NTINY; i++, at += 20) {
		const struct event *want = &tiny_events[i];
		uint64_t ticks = ns ? want->ticks / 2 + 1 : want->ticks; /* rounded */

		assert_int_equal(be32(e, at), 0);
		assert_int_equal(be32(e, at + 4), ticks);
		assert_int_equal(be32(e, at + 8), 0);
		assert_int_equal(be32(e, at + 12), want->code);
		assert_int_equal(be32(e, at + 16), want->datum);
	}
	assert_int_equal(at, e->size);
}

static void test_bytes(void **state)
{
	static const char head[] = "\x01\x00\x00\x05\x69\x7e\x97\x7e"
				   "\x00\x00\x00\x01\x00\x00\x00\xa0";
	static const char strings[160] =
		"FileStrtab\0pid:10 tid:20\0outer\0inner\0THREAD/THRUNNING\0%s\0THREAD/THREADY\0"
		"FUNC/ENTER\0FUNC/EXIT\0THREAD/CPU\0%u\0TRACE/LOST\0TRACE/EVENT\0THREAD/OFFCPU\0"
		"worker t20(10)";
	static const char table[64] = "FileStrtab";
	struct exported e;
	size_t at = 16 + sizeof(strings);

	(void)state;
	tiny_trace(EXPORT_HZ);
	export_ok(NULL, NULL, &e);
	assert_memory_equal(e.data, head, 16);
	assert_memory_equal(e.data + 16, strings, sizeof(strings));
	/* symbols of the functions that were called, at the map's addresses */
	assert_int_equal(be32(&e, at), 2);
	assert_int_equal(be32(&e, at + 4), 68 + 2 * 8);
	assert_memory_equal(e.data + at + 8, table, 64);
	assert_int_equal(be32(&e, at + 72), 2);
	assert_int_equal(be32(&e, at + 76), 0x1001000);
	assert_int_equal(be32(&e, at + 80), AT_OUTER);
	assert_int_equal(be32(&e, at + 84), 0x1001100);
	assert_int_equal(be32(&e, at + 88), AT_INNER);
	at += 8 + 68 + 16;
	/* event definitions */
	assert_int_equal(be32(&e, at), 3);
	assert_int_equal(be32(&e, at + 4), 68 + 8 * 12);
	assert_memory_equal(e.data + at + 8, table, 64);
	assert_int_equal(be32(&e, at + 72), 8);
	assert_int_equal(be32(&e, at + 76), 1);
	assert_string_equal(e.data + 16 + be32(&e, at + 80), "THREAD/THRUNNING");
	assert_string_equal(e.data + 16 + be32(&e, at + 84), "%s");
	assert_int_equal(be32(&e, at + 100), 3);
	assert_string_equal(e.data + 16 + be32(&e, at + 104), "FUNC/ENTER");
	at += 8 + 68 + 8 * 12;
	/* tracks */
	assert_int_equal(be32(&e, at), 4);
	assert_int_equal(be32(&e, at + 4), 68 + 8);
	assert_memory_equal(e.data + at + 8, table, 64);
	assert_int_equal(be32(&e, at + 72), 1);
	assert_int_equal(be32(&e, at + 76), 0);
	assert_string_equal(e.data + 16 + be32(&e, at + 80), "worker t20(10)");
	at += 8 + 68 + 8;
	/* events */
	assert_int_equal(be32(&e, at), 5);
	assert_int_equal(be32(&e, at + 4), 72 + 20 * NTINY);
	assert_memory_equal(e.data + at + 8, table, 64);
	assert_int_equal(be32(&e, at + 72), NTINY);
	assert_int_equal(be32(&e, at + 76), EXPORT_HZ);
	check_tiny_events(&e, at + 80, false);
	assert_string_equal(e.notices, "");
	free_export(&e);
}

/* The document's rules for the clock, padding and byte order. */
static void test_document(void **state)
{
	struct exported big, small;

	(void)state;
	tiny_trace(EXPORT_HZ);
	export_ok(document, NULL, &big);
	json_decref(read_strictly("cpel.py --document"));
	export_ok(little, NULL, &small);
	json_decref(read_strictly("cpel.py --document"));
	assert_int_equal(big.size, small.size);
	assert_int_equal(big.data[0], 1);
	assert_int_equal(be32(&big, 12), 160);
	assert_int_equal(be32(&big, big.size - 20 * NTINY - 4), 1000);
	check_tiny_events(&big, big.size - 20 * NTINY, true);
	assert_int_equal(small.data[0], 0x81);
	assert_int_equal(small.data[2], 5);
	assert_int_equal(small.data[3], 0);
	assert_memory_equal(big.data + 16, small.data + 16, 160);
	for (size_t at = 4; at < big.size; at += 4) {
		bool is_text = (at >= 16 && at < 16 + 160) || be32(&big, at) == be32(&small, at);

		assert_true(is_text || be32(&big, at) == le32(&small, at));
	}
	free_export(&big);
	free_export(&small);
}

static void test_little_alone(void **state)
{
	static const char *const options[] = { "cpel-little", NULL };
	struct exported e;

	(void)state;
	tiny_trace(EXPORT_HZ);
	run_export(&kx_exporter_cpel, options, NULL, false, &e);
	assert_int_equal(e.result, -EINVAL);
	assert_int_equal(e.size, 0);
	assert_non_null(strstr(e.err.text, "--cpel-document"));
	free_export(&e);
}

/* A frequency of more than 32 bits: times are in nanoseconds. */
static void test_fast_clock(void **state)
{
	struct exported e;
	json_t *json;

	(void)state;
	tiny_trace(5000000000);
	export_ok(NULL, NULL, &e);
	json = read_strictly("cpel.py");
	assert_int_equal(number_at(json, "clock"), 1000000000);
	assert_int_equal(number_at(json, "functions/inner/ticks"), 400);
	assert_int_equal(number_at(json, "functions/outer/ticks"), 1400);
	assert_int_equal(be32(&e, e.size - 16), 1 + 1800);
	json_decref(json);
	free_export(&e);
	tiny_trace(UINT32_MAX);
	export_ok(NULL, NULL, &e);
	json = read_strictly("cpel.py");
	assert_int_equal(number_at(json, "clock"), UINT32_MAX);
	assert_int_equal(number_at(json, "functions/outer/ticks"), 7001);
	json_decref(json);
	free_export(&e);
}

static void test_names(void **state)
{
	static const char *const names[] = {
		"quote\"d",
		"com,ma",
		"semi;colon",
		"new\nline",
		"uni\xc3\xa9\xe2\x82\xac",
		"back\\slash",
		"per%s%n%%cent",
		"FileStrtab",
		"%s",
		"esc\x1b[31mape\x7f",
	};
	/* as the tools print them: controls would forge lines and change the terminal */
	static const char *const printed[] = {
		"quote\"d",
		"com,ma",
		"semi;colon",
		"new\\nline",
		"uni\xc3\xa9\xe2\x82\xac",
		"back\\slash",
		"per%s%n%%cent",
		"FileStrtab",
		"%s",
		"esc\\x1b[31mape\\x7f",
	};
	enum { N = sizeof(names) / sizeof(names[0]) };
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	struct exported e;
	json_t *json, *f;
	int fd;

	(void)state;
	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 2147483647, 2147483646, "100%(a)\nt1(2)\x7f", "p");
	for (uint32_t i = 0; i < N; i++) {
		enter(t, T0 + 10 * i, 0, i + 1);
		leave(t, T0 + 10 * i + 1 + i, 0, i + 1);
	}
	end_trace(w, fd);
	write_map(names, N, NULL);
	for (int i = 0; i < 2; i++) {
		export_ok(i ? document : NULL, NULL, &e);
		json = read_strictly(i ? "cpel.py --document" : "cpel.py");
		for (int k = 0; k < N; k++) {
			f = json_object_get(json_object_get(json, "functions"), printed[k]);
			assert_int_equal(json_integer_value(json_object_get(f, "count")), 1);
			if (!i)
				assert_int_equal(number_at(f, "ticks"), 1 + k);
		}
		assert_string_equal(json_string_value(json_array_get(json_object_get(json,
						      "all_tracks"), 0)),
				    i ? "100%(a)_t1(2)_ t2147483646(2147483647)"
				      : "100_[a]_t1[2]_ t2147483646(2147483647)");
		json_decref(json);
		free_export(&e);
	}
}

/* A trace without a record, and one whose threads made no call. */
static void test_empty(void **state)
{
	struct kx_fdr_writer *w;
	struct exported e;
	json_t *json;
	int fd;

	(void)state;
	for (int i = 0; i < 2; i++) {
		w = begin_trace(0, EXPORT_HZ, &fd);
		if (i)
			note(kx_fdr_writer_thread(w, 1, 2, "idle", "idle"), T0,
			     "kxray:session {}");
		end_trace(w, fd);
		export_ok(NULL, NULL, &e);
		json = read_strictly("cpel.py");
		assert_int_equal(number_at(json, "events"), 0);
		assert_int_equal(json_array_size(json_object_get(json, "sections")), 4);
		assert_non_null(strstr(e.notices, "g2"));
		json_decref(json);
		free_export(&e);
	}
}

static void test_many_threads(void **state)
{
	enum { N = 10000 };
	struct kx_fdr_writer *w;
	struct exported e;
	json_t *json;
	char track[64];
	int fd;

	(void)state;
	w = begin_trace(0, EXPORT_HZ, &fd);
	for (int i = 0; i < N; i++) {
		struct kx_fdr_thread *t = kx_fdr_writer_thread(w, 7, 70000 + i, "t", "p");

		assert_non_null(t);
		for (int k = 0; k <= i % 3; k++) {
			enter(t, T0 + (uint64_t)(N - i) + (uint64_t)k * N, 0, 1);
			leave(t, T0 + (uint64_t)(N - i) + (uint64_t)k * N + 5, 0, 1);
		}
	}
	end_trace(w, fd);
	export_ok(NULL, NULL, &e);
	json = read_strictly("cpel.py");
	assert_int_equal(json_object_size(json_object_get(json, "tracks")), N);
	assert_int_equal(number_at(json, "functions/#1/count"), 3334 + 2 * 3333 + 3 * 3333);
	assert_int_equal(number_at(json, "functions/#1/ticks"), 5 * (3334 + 2 * 3333 + 3 * 3333));
	for (int i = 0; i < N; i += 997) {
		snprintf(track, sizeof(track), "tracks/t t%d(7)/#1", 70000 + i);
		assert_int_equal(number_at(json, track), 1 + i % 3);
	}
	json_decref(json);
	free_export(&e);
}

/* Open and repaired calls are closed; losses and events are written; recursion beyond 128. */
static void test_troubles(void **state)
{
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	struct exported e;
	json_t *json;
	int fd;

	(void)state;
	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 1, 2, "first", "p");
	enter(t, T0 + 10, 0, 1);
	enter(t, T0 + 20, 0, 2);
	note(t, T0 + 30, "kxray:repaired {\"exits\":1}");
	leave(t, T0 + 30, 0, 2);
	note(t, T0 + 50, "kxray:loss {\"entries\":3,\"exits\":2,\"from\":1000040,\"to\":1000050}");
	note(t, T0 + 60, "hello \x01%s");
	note(t, T0 + 61, "hello \x01%s");
	enter(t, T0 + 70, 0, 3);
	t = kx_fdr_writer_thread(w, 1, 3, "second", "p");
	for (unsigned i = 0; i < 129; i++)
		enter(t, T0 + 15 + i, 0, 4);
	for (unsigned i = 0; i < 129; i++)
		leave(t, T0 + 144 + i, 0, 4);
	end_trace(w, fd);
	export_ok(NULL, NULL, &e);
	json = read_strictly("cpel.py");
	assert_int_equal(number_at(json, "functions/#1/ticks"), 262);
	assert_int_equal(number_at(json, "functions/#2/ticks"), 10);
	assert_int_equal(number_at(json, "functions/#3/ticks"), 202);
	assert_int_equal(number_at(json, "functions/#4/count"), 129);
	assert_int_equal(number_at(json, "functions/#4/ticks"), 129 * 129);
	assert_int_equal(number_at(json, "lost"), 5);
	assert_int_equal(number_at(json, "codes/TRACE~1EVENT"), 2);
	assert_int_equal(number_at(json, "codes/TRACE~1LOST"), 1);
	assert_non_null(memmem(e.data, e.size, "hello \\x01%s", 13));
	assert_non_null(strstr(e.notices, "128"));
	json_decref(json);
	free_export(&e);
}

/* Times count from the trace's first record, even if only a part of the trace is exported. */
static void test_filter(void **state)
{
	const struct kx_call_filter filter = { .from_ns = 2500, .to_ns = 4000 };
	struct exported e;
	json_t *json;

	(void)state;
	tiny_trace(EXPORT_HZ);
	export_ok(NULL, &filter, &e);
	json = read_strictly("cpel.py");
	assert_int_equal(number_at(json, "functions/inner/ticks"), 1000);
	assert_int_equal(number_at(json, "functions/outer/ticks"), 3000);
	assert_int_equal(be32(&e, e.size - 16), 8001);
	json_decref(json);
	free_export(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_little_alone),
		cmocka_unit_test(test_fast_clock),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_troubles),
		cmocka_unit_test(test_filter),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
