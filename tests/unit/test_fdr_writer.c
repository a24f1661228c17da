// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/fdr.h"
#include "trace/fdr_writer.h"
#include "fast_size.h"
#include "fdr_writer_rig.h"
#include "llvm_xray.h"

#define AT_ONCE 64u

/* @together: each AT_ONCE calls by one kx_fdr_calls. */
static uint8_t *write_calls(int version, const struct kx_fdr_call *calls, uint32_t n, bool together, size_t *size)
{
	struct kx_fdr_thread *t;
	uint32_t written;
	struct file f;

	start(&f, version, 1024);
	t = kx_fdr_writer_thread(f.w, 10, 20, "w", "p");
	assert_non_null(t);
	for (uint32_t i = 0; i < n; i += AT_ONCE) {
		const uint32_t most = n - i < AT_ONCE ? n - i : AT_ONCE;

		if (together) {
			assert_int_equal(kx_fdr_calls(t, calls + i, most, &written), 0);
			assert_int_equal(written, most);
		}
		for (const struct kx_fdr_call *c = calls + i; !together && c < calls + i + most; c++)
			assert_int_equal(c->action == KX_FDR_ENTRY ? kx_fdr_entry(t, c->tsc, c->cpu, c->func, NULL, 0)
								   : kx_fdr_exit(t, c->tsc, c->cpu, c->func,
										 c->action == KX_FDR_TAIL_EXIT),
					 0);
		if (i % 320 == 0)
			assert_int_equal(kx_fdr_custom(t, calls[i + most - 1].tsc + 50, "note", 4), 0);
	}
	assert_int_equal(kx_fdr_flush(f.w, NULL), 0);
	assert_int_equal(kx_fdr_writer_hits(f.w), n);
	end(&f);
	return read_back(&f, size);
}

/* The same bytes with pauses, other CPUs, full buffers, times that go back. */
static void test_many_calls(void **state)
{
	enum { N = 5000 };
	static struct kx_fdr_call calls[N];
	uint64_t tsc = T0;

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		tsc += i % 701 == 700 ? 5ull << 32 : 7 + i % 13;
		calls[i] = (struct kx_fdr_call){ tsc - (i % 97 == 96 ? 30 : 0), 1 + i % 77, (uint16_t)(i / 211 % 3), (uint16_t)(i % 3) };
	}
	for (int version = 1; version <= 5; version++) {
		size_t size, same;
		uint8_t *one = write_calls(version, calls, N, false, &size), *many = write_calls(version, calls, N, true, &same);

		assert_true(size > 8 * N);
		assert_int_equal(size, same);
		assert_memory_equal(one, many, size);
		free(one);
		free(many);
	}
}

/* Those before the one that cannot be written are. */
static void test_many_calls_until_an_error(void **state)
{
	struct kx_fdr_call calls[5];
	struct kx_fdr_thread *t;
	uint32_t written = 99;
	struct file f;

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		calls[i] = (struct kx_fdr_call){ T0 + i, i == 3 ? KX_FDR_MAX_FUNC + 1 : 1, 1, KX_FDR_ENTRY };
	start(&f, 5, 1024);
	t = kx_fdr_writer_thread(f.w, 10, 20, "w", "p");
	assert_non_null(t);
	assert_int_equal(kx_fdr_calls(t, calls, 5, &written), -EINVAL);
	assert_int_equal(written, 3);
	assert_int_equal(kx_fdr_calls(t, calls, 0, &written), 0);
	assert_int_equal(written, 0);
	end(&f);
}

static void test_time_does_not_go_back(void **state)
{
	struct kx_fdr_thread *t;
	struct file f;
	char *out;

	(void)state;
	start(&f, 5, 0);
	t = kx_fdr_writer_thread(f.w, 1, 1, NULL, NULL);
	assert_int_equal(kx_fdr_entry(t, 5, 0, 1, NULL, 0), 0); /* before T0 */
	assert_int_equal(kx_fdr_entry(t, T0 + 50, 0, 2, NULL, 0), 0);
	assert_int_equal(kx_fdr_exit(t, T0 + 40, 0, 2, false), 0);
	assert_int_equal(kx_fdr_custom(t, T0 + 30, "a", 1), 0);
	assert_int_equal(kx_fdr_cpu(t, T0 + 20, 1), 0);
	assert_int_equal(kx_fdr_exit(t, T0 + 10, 1, 1, false), 0);
	end(&f);
	out = run_okf("%s convert -f yaml %s | grep -o 'tsc: [0-9][0-9]*' | tr '\\n' ' '",
		      llvm_xrays[0], f.path);
	assert_string_equal(out, "tsc: 1000000 tsc: 1000000 tsc: 1000050 tsc: 1000050 "
				 "tsc: 1000050 tsc: 1000050 ");
	free(out);
}

/* Unusual names: quotes, control characters, invalid UTF-8, incomplete characters. */
static void test_thread_names(void **state)
{
	static const char *const names[][2] = {
		{ "plain", "plain" },
		{ "a\"b\\c\n\x01", "a\"b\\c\n\x01" },
		{ "\xff\xfe"
		  "abcdef", "??abcdef" },
		{ "caf\xc3\xa9", "caf\xc3\xa9" },
		{ "half\xc3", "half" },
		{ "half\xf0\x9f\x98", "half" },
		{ "", "" },
		{ NULL, "" },
		{ "0123456789012345678901234567890123456789012345678901234567890123456789",
		  "0123456789012345678901234567890123456789012345678901234567890123" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct kx_fdr_thread *t;
		struct file f;
		uint8_t *data;
		uint32_t len;
		size_t size;
		json_t *json;

		start(&f, 5, 0);
		t = kx_fdr_writer_thread(f.w, -1, 3, names[i][0], "p");
		assert_ptr_equal(kx_fdr_writer_thread(f.w, -1, 3, "other", "q"), t);
		assert_int_equal(kx_fdr_entry(t, T0, 0, 1, NULL, 0), 0);
		end(&f);
		data = read_back(&f, &size);
		memcpy(&len, data + 32 + 80 + 1, 4);
		assert_memory_equal(data + 32 + 96, "kxray:thread {", 14);
		json = json_loadb((char *)data + 32 + 96 + 13, len - 13, 0, NULL);
		assert_non_null(json);
		assert_string_equal(json_string_value(json_object_get(json, "name")), names[i][1]);
		assert_int_equal(json_integer_value(json_object_get(json, "pid")), -1);
		json_decref(json);
		free(data);
	}
}

static void test_thread_id_is_reused(void **state)
{
	struct kx_fdr_thread *t;
	struct file f;
	char *out;

	(void)state;
	start(&f, 5, 0);
	for (int i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "life%d", i);
		t = kx_fdr_writer_thread(f.w, 9, 9, name, "p");
		assert_int_equal(kx_fdr_entry(t, T0 + 100 + 10 * (uint64_t)i, 0, 1, NULL, 0), 0);
		assert_int_equal(kx_fdr_exit(t, T0 + 101 + 10 * (uint64_t)i, 0, 1, false), 0);
		assert_int_equal(kx_fdr_thread_end(t), 0);
	}
	assert_int_equal(kx_fdr_writer_threads(f.w), 20);
	assert_int_equal(kx_fdr_writer_live(f.w), 0);
	end(&f);
	llvm_xray_accepts(f.path, NULL, 0);
	out = run_okf("%s fdr-dump %s | grep -c '\"name\":\"life'", llvm_xrays[0], f.path);
	assert_string_equal(out, "20\n");
	free(out);
}

static void test_empty_trace(void **state)
{
	(void)state;
	for (int version = 1; version <= 5; version++) {
		struct file f;

		start(&f, version, 0);
		assert_non_null(kx_fdr_writer_thread(f.w, 1, 2, "idle", "p"));
		end(&f);
		for (size_t v = 0; v < N_LLVM_XRAYS; v++) {
			char *out;

			if (access(llvm_xrays[v], X_OK) != 0)
				continue;
			out = run_okf("%s fdr-dump --verify %s", llvm_xrays[v], f.path);
			assert_non_null(strstr(out, "kxray:session {}"));
			free(out);
			free(run_okf("%s convert -f yaml %s", llvm_xrays[v], f.path));
			free(run_okf("%s account %s", llvm_xrays[v], f.path));
		}
	}
}

static void test_memory_of_ten_thousand_threads(void **state)
{
	struct file f;

	(void)state;
	start(&f, 5, 0);
	for (int i = 0; i < 10000; i++) {
		struct kx_fdr_thread *t = kx_fdr_writer_thread(f.w, 1, 1 + i, "thread", "server");

		assert_int_equal(kx_fdr_entry(t, T0 + 1, 0, 1, NULL, 0), 0);
		assert_int_equal(kx_fdr_exit(t, T0 + 2, 0, 1, false), 0);
	}
	assert_true(kx_fdr_writer_memory(f.w) <= 10000 * 1024);
	assert_int_equal(kx_fdr_writer_threads(f.w), 10000);
	end(&f);
}

/* The table of threads is compacted when threads end, in any order. */
static void test_threads_end_in_any_order(void **state)
{
	enum { N = 1000, STEP = 7 * 11 };
	static struct kx_fdr_thread *t[N];
	struct file f;

	(void)state;
	start(&f, 5, 0);
	for (int32_t i = 0; i < N; i++)
		t[i] = kx_fdr_writer_thread(f.w, i / 3, i, NULL, NULL);
	for (int i = 0, at = 0; i < N; i++, at = (at + STEP) % N) {
		assert_int_equal(kx_fdr_writer_live(f.w), N - i);
		for (int32_t k = at; k < N; k += 97)
			if (t[k])
				assert_ptr_equal(kx_fdr_writer_thread(f.w, k / 3, k, NULL, NULL), t[k]);
		assert_int_equal(kx_fdr_thread_end(t[at]), 0);
		t[at] = NULL;
	}
	assert_int_equal(kx_fdr_writer_live(f.w), 0);
	end(&f);
}

static void test_memory_of_many_short_threads(void **state)
{
	enum { N = 100000, ALIVE = 50 };
	struct kx_fdr_thread *t[ALIVE] = { NULL };
	struct kx_fdr_identity who = { .name = "thread", .process = "server" };
	struct file f;
	size_t most = 0;

	(void)state;
	start(&f, 5, 0);
	for (int i = 0; i < N; i++) {
		struct kx_fdr_thread **place = &t[i % ALIVE];

		if (*place)
			assert_int_equal(kx_fdr_thread_end(*place), 0);
		who.pid = 1 + i / 3 % 10000; /* ids come again, in pairs and alone */
		who.tid = 1 + i % 30000;
		*place = kx_fdr_writer_thread_of(f.w, &who);
		assert_int_equal(kx_fdr_entry(*place, T0 + (uint64_t)i, 0, 1, NULL, 0), 0);
		assert_int_equal(kx_fdr_exit(*place, T0 + (uint64_t)i, 0, 1, false), 0);
		assert_true(kx_fdr_writer_live(f.w) <= ALIVE);
		if (kx_fdr_writer_memory(f.w) > most)
			most = kx_fdr_writer_memory(f.w);
	}
	assert_true(most <= ALIVE * 1024);
	assert_int_equal(kx_fdr_writer_threads(f.w), N);
	end(&f);
}

static void test_ids_in_a_namespace(void **state)
{
	const struct kx_fdr_identity who = {
		.pid = 1234, .tid = 1240, .ns_pid = 7, .ns_tid = 9, .name = "w", .process = "p",
	};
	struct kx_fdr_thread *t;
	struct file f;
	char *out;

	(void)state;
	start(&f, 5, 0);
	t = kx_fdr_writer_thread_of(f.w, &who);
	assert_int_equal(kx_fdr_entry(t, T0, 0, 1, NULL, 0), 0);
	end(&f);
	out = run_okf("grep -ao '{\"tid.*}' %s", f.path);
	assert_string_equal(out, "{\"tid\":1240,\"pid\":1234,\"name\":\"w\",\"process\":\"p\","
				 "\"ns_pid\":7,\"ns_tid\":9}\n");
	free(out);
}

static void test_frequency_is_corrected(void **state)
{
	struct kx_fdr_thread *t;
	struct file f;
	uint8_t *data;
	uint64_t hz;
	size_t size;

	(void)state;
	start(&f, 5, 0);
	t = kx_fdr_writer_thread(f.w, 1, 1, NULL, NULL);
	assert_int_equal(kx_fdr_entry(t, T0, 0, 1, NULL, 0), 0);
	assert_int_equal(kx_fdr_finish(f.w, 2599998765, NULL), 0);
	end(&f);
	data = read_back(&f, &size);
	memcpy(&hz, data + 8, 8);
	assert_int_equal(hz, 2599998765);
	free(data);
}

static void test_custom_event_sizes(void **state)
{
	char payload[4097];

	(void)state;
	memset(payload, 'p', sizeof(payload));
	for (int version = 1; version <= 5; version++) {
		struct kx_fdr_thread *t;
		struct file f;

		start(&f, version, 1024);
		t = kx_fdr_writer_thread(f.w, 1, 1, NULL, NULL);
		assert_int_equal(kx_fdr_custom(t, T0, payload, 0), -EINVAL);
		assert_int_equal(kx_fdr_custom(t, T0, payload, 4097), -EINVAL);
		/* larger than a buffer: it gets its own buffer, except in version 1 */
		assert_int_equal(kx_fdr_custom(t, T0, payload, 4096), version > 1 ? 0 : -EMSGSIZE);
		assert_int_equal(kx_fdr_custom(t, T0, payload, 1), 0);
		/* the maximum in version 1: without preamble 48, marker 16, EndOfBuffer 16 */
		assert_int_equal(kx_fdr_custom(t, T0, payload, 1024 - 80 + (version > 1)), 0);
		assert_int_equal(kx_fdr_entry(t, T0 + 1, 0, 1, NULL, 0), 0);
		assert_int_equal(kx_fdr_exit(t, T0 + 2, 0, 1, false), 0);
		end(&f);
		llvm_xray_accepts(f.path, NULL, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_does_not_go_back),
		cmocka_unit_test(test_thread_names),
		cmocka_unit_test(test_thread_id_is_reused),
		cmocka_unit_test(test_empty_trace),
		cmocka_unit_test(test_memory_of_ten_thousand_threads),
		cmocka_unit_test(test_threads_end_in_any_order),
		cmocka_unit_test(test_memory_of_many_short_threads),
		cmocka_unit_test(test_ids_in_a_namespace),
		cmocka_unit_test(test_frequency_is_corrected),
		cmocka_unit_test(test_custom_event_sizes),
		cmocka_unit_test(test_many_calls),
		cmocka_unit_test(test_many_calls_until_an_error),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
