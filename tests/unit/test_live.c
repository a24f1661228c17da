// SPDX-License-Identifier: BSD-2-Clause
/* What kxray top shows: rows of an interval, percentiles from powers of two, table, histogram,
 * JSON, metrics. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/display.h"
#include "live/call_json.h"
#include "live/call_lines.h"
#include "live/call_rows.h"
#include "live/metrics.h"
#include "live/metrics_server.h"

/* Adds calls of these durations to what a kernel side would have counted. */
static void end_calls(struct kx_call_stats *s, const uint64_t *ns, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned bucket = ns[i] > 1 ? 63 - (unsigned)__builtin_clzll(ns[i]) : 0;

		s->calls++;
		s->sum_ns += ns[i];
		s->max_ns = ns[i] > s->max_ns ? ns[i] : s->max_ns;
		s->buckets[bucket < KX_CALL_BUCKETS ? bucket : KX_CALL_BUCKETS - 1]++;
	}
}

static char *text_of(struct kx_text_out *out)
{
	kx_text_char(out, 0);
	assert_int_equal(kx_text_flush(out), 0);
	return out->memory;
}

static struct kx_text_out *new_text(void)
{
	struct kx_text_out *out = malloc(sizeof(*out));

	assert_non_null(out);
	kx_text_init_memory(out);
	return out;
}

static void free_text(struct kx_text_out *out)
{
	free(out->memory);
	free(out);
}

static void test_interval(void **state)
{
	static const uint64_t first[] = { 100, 900 }, second[] = { 300 };
	struct kx_call_rows rows = { 0 };
	struct kx_call_stats now = { 0 };

	(void)state;
	assert_int_equal(kx_call_rows_add(&rows, "f", "m"), 0);
	end_calls(&now, first, 2);
	kx_call_row_update(&rows.items[0], &now);
	now.max_ns = 0; /* the kernel side's is read and set back */
	end_calls(&now, second, 1);
	now.calls++; /* one is still open */
	kx_call_row_update(&rows.items[0], &now);
	assert_int_equal(rows.items[0].last.calls, 2);
	assert_int_equal(kx_call_timed(&rows.items[0].last), 1);
	assert_int_equal(rows.items[0].last.sum_ns, 300);
	assert_int_equal(rows.items[0].last.max_ns, 300);
	assert_int_equal(rows.items[0].last.buckets[8], 1);
	assert_int_equal(rows.items[0].total.calls, 4);
	assert_int_equal(rows.items[0].total.sum_ns, 1300);
	assert_int_equal(rows.items[0].total.max_ns, 900);
	kx_call_rows_free(&rows);
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Within a factor of 2 of the true one, for durations of all kinds; exact where the bucket has one
 * value. */
static void test_quantiles(void **state)
{
	static const unsigned permille[] = { 1, 500, 900, 990, 999, 1000 };
	struct kx_call_stats empty = { 0 }, one = { 0 };
	uint64_t x = 88172645463325252ull, ns[1000];

	(void)state;
	assert_int_equal(kx_call_quantile(&empty, 500), 0);
	end_calls(&one, (const uint64_t[]){ 1 }, 1);
	assert_int_equal(kx_call_quantile(&one, 500), 1);
	for (unsigned shift = 4; shift < 60; shift++) {
		struct kx_call_stats s = { 0 };

		for (size_t i = 0; i < 1000; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			ns[i] = (x >> (64 - shift)) + 2;
		}
		end_calls(&s, ns, 1000);
		qsort(ns, 1000, sizeof(ns[0]), by_size);
		for (size_t i = 0; i < sizeof(permille) / sizeof(permille[0]); i++) {
			uint64_t got = kx_call_quantile(&s, permille[i]),
				 want = ns[permille[i] - 1];

			if (want >= 1ull << (KX_CALL_BUCKETS - 1))
				continue; /* the last bucket has no upper end */
			if (got * 2 <= want || got >= want * 2)
				fail_msg("shift %u, %u permille: %lu, want %lu", shift, permille[i],
					 got, want);
			assert_true(got <= s.max_ns);
		}
	}
}

/* Evenly spread calls: interpolation is exact. */
static void test_interpolation(void **state)
{
	struct kx_call_stats s = { 0 };

	(void)state;
	for (uint64_t ns = 1024; ns < 2048; ns++)
		end_calls(&s, &ns, 1);
	assert_int_equal(kx_call_quantile(&s, 500), 1024 + 511);
	assert_int_equal(kx_call_quantile(&s, 250), 1024 + 255);
	/* the longest bounds its bucket: all calls of 1100 ns are not said to last 1536 */
	memset(&s, 0, sizeof(s));
	for (int i = 0; i < 100; i++)
		end_calls(&s, (const uint64_t[]){ 1100 }, 1);
	assert_in_range(kx_call_quantile(&s, 500), 1024, 1100);
	/* a huge number of calls does not overflow */
	s.buckets[10] = UINT64_MAX / 2;
	assert_in_range(kx_call_quantile(&s, 990), 1024, 1101);
}

/* Three functions; 2 s, of which the last one had one. */
static void fill(struct kx_call_rows *rows)
{
	static const uint64_t a[] = { 1000, 1000, 2000 }, b[] = { 500000000 };
	struct kx_call_stats now = { 0 };

	assert_int_equal(kx_call_rows_add(rows, "often", "prog"), 0);
	assert_int_equal(kx_call_rows_add(rows, "slow", "lib.so"), 0);
	assert_int_equal(kx_call_rows_add(rows, "never", "prog"), 0);
	assert_int_equal(kx_call_rows_add(rows, "no_exit", "prog"), 0);
	end_calls(&now, a, 3);
	kx_call_row_update(&rows->items[0], &now);
	memset(&now, 0, sizeof(now));
	end_calls(&now, b, 1);
	kx_call_row_update(&rows->items[1], &now);
	now = (struct kx_call_stats){ .calls = 2 };
	kx_call_row_update(&rows->items[3], &now);
	rows->traced = 4;
	rows->seconds = 1;
	rows->total_seconds = 2;
	rows->cpu = 0.25;
	rows->total_cpu = 1;
}

static void assert_order(const struct kx_call_rows *rows, enum kx_call_sort sort,
			 const char *filter, const char *want)
{
	const struct kx_call_view v = { .sort = sort, .filter = filter };
	const struct kx_call_row **sorted;
	char got[200] = "";
	size_t n;

	sorted = kx_call_rows_sorted(rows, &v, &n);
	assert_non_null(sorted);
	for (size_t i = 0; i < n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s ", sorted[i]->name);
	assert_string_equal(got, want);
	free(sorted);
}

static void test_order(void **state)
{
	struct kx_call_rows rows = { 0 };

	(void)state;
	fill(&rows);
	assert_order(&rows, KX_CALL_BY_SHARE, NULL, "slow often no_exit ");
	assert_order(&rows, KX_CALL_BY_CALLS, NULL, "often no_exit slow ");
	assert_order(&rows, KX_CALL_BY_P50, "", "slow often no_exit ");
	assert_order(&rows, KX_CALL_BY_P99, NULL, "slow often no_exit ");
	assert_order(&rows, KX_CALL_BY_MAX, NULL, "slow often no_exit ");
	assert_order(&rows, KX_CALL_BY_NAME, NULL, "no_exit often slow ");
	assert_order(&rows, KX_CALL_BY_NAME, "OFT", "often ");
	assert_order(&rows, KX_CALL_BY_NAME, "lib", "slow ");
	assert_order(&rows, KX_CALL_BY_NAME, "x y", "");
	for (unsigned i = 0; i < KX_CALL_SORTS; i++)
		assert_non_null(kx_call_sort_words[i]);
	assert_null(kx_call_sort_words[KX_CALL_SORTS]);
	kx_call_rows_free(&rows);
}

static void test_table(void **state)
{
	const struct kx_call_view v = { .sort = KX_CALL_BY_SHARE };
	const struct kx_screen pipe = { 0 };
	struct kx_text_out *out = new_text();
	struct kx_call_rows rows = { 0 };

	(void)state;
	fill(&rows);
	kx_put_call_summary(out, &pipe, "process 7 (prog)", &rows, &v);
	kx_text_char(out, '\n');
	assert_int_equal(kx_put_call_table(out, &pipe, &rows, &v, 0), 0);
	assert_string_equal(text_of(out),
			    "process 7 (prog): 6 calls/s of 4 functions, 25 % of a CPU\n"
			    "  CALLS/S  [SHARE]       P50       P99       MAX  FUNCTION\n"
			    "     1.00   50.0 %  384.2 ms  384.2 ms  500.0 ms  slow [lib.so]\n"
			    "     3.00    0.0 %    896 ns  1.512 us  2.000 us  often [prog]\n"
			    "     2.00        -         -         -         -  no_exit [prog]\n");
	free_text(out);
	kx_call_rows_free(&rows);
}

/* No line is wider than the screen, and numbers stay whole. */
static void test_widths(void **state)
{
	static const char *const name =
		"std::vector<std::pair<std::string, int>, std::allocator<std::pair<std::string, "
		"int> > >::push_back(std::pair<std::string, int>&&)";
	struct kx_call_rows rows = { 0 };
	struct kx_call_stats now = { 0 };
	static const uint64_t ns[] = { 999999999999ull };

	(void)state;
	assert_int_equal(kx_call_rows_add(&rows, name, "libstdc++.so.6.0.30"), 0);
	end_calls(&now, ns, 1);
	now.calls = 99999999;
	kx_call_row_update(&rows.items[0], &now);
	rows.seconds = 1;
	for (unsigned columns = 64; columns <= 200; columns++) {
		const struct kx_screen screen = { .columns = columns };
		const struct kx_call_view v = { 0 };
		struct kx_text_out *out = new_text();

		kx_put_call_summary(out, &screen, "process 4194304 (a-rather-long-n)", &rows, &v);
		kx_text_char(out, '\n');
		assert_int_equal(kx_put_call_table(out, &screen, &rows, &v, 0), 0);
		kx_put_call_histogram(out, &screen, &rows.items[0], &v, 1);
		for (char *line = strtok(text_of(out), "\n"); line; line = strtok(NULL, "\n"))
			if (kx_display_width(line, strlen(line)) > columns)
				fail_msg("more than %u columns: %s", columns, line);
		free_text(out);
	}
	/* narrower, columns are left out, and never the name or what rows are sorted by */
	for (unsigned columns = 32; columns < 62; columns++) {
		const struct kx_screen screen = { .columns = columns };
		const struct kx_call_view v = { .sort = KX_CALL_BY_P99 };
		struct kx_text_out *out = new_text();
		const char *text;

		assert_int_equal(kx_put_call_table(out, &screen, &rows, &v, 0), 0);
		text = text_of(out);
		assert_non_null(strstr(text, "[P99]  FUNCTION") ?: strstr(text, "[P99]       MAX"));
		assert_non_null(strstr(text, "Too narrow for"));
		for (char *line = strtok(text_of(out), "\n"); line; line = strtok(NULL, "\n"))
			if (kx_display_width(line, strlen(line)) > columns)
				fail_msg("more than %u columns: %s", columns, line);
		free_text(out);
	}
	kx_call_rows_free(&rows);
}

static void test_histogram(void **state)
{
	const struct kx_call_view v = { .total = true };
	const struct kx_screen screen = { .columns = 60 };
	struct kx_text_out *out = new_text();
	struct kx_call_rows rows = { 0 };

	(void)state;
	fill(&rows);
	kx_put_call_histogram(out, &screen, &rows.items[0], &v, 2);
	assert_string_equal(text_of(out),
			    "often [prog]\n"
			    "3 calls in 2.0 s, p50 896 ns, p99 1.512 us (interpolated),\n"
			    "max 2.000 us\n"
			    "      FROM       CALLS    SHARE\n"
			    "    512 ns           2   66.7 %  ###########################\n"
			    "  1.024 us           1   33.3 %  ##############\n");
	free_text(out);
	out = new_text();
	kx_put_call_histogram(out, &screen, &rows.items[3], &v, 2);
	assert_string_equal(text_of(out),
			    "no_exit [prog]\n2 calls in 2.0 s; 2 without a measured end\n");
	free_text(out);
	kx_call_rows_free(&rows);
}

static void test_json(void **state)
{
	const struct kx_call_json j = { .interval = 2, .time = 1e9, .missed = 5, .last = true };
	const struct kx_call_view v = { 0 };
	struct kx_text_out *out = new_text();
	struct kx_call_rows rows = { 0 };
	json_t *line, *functions, *f;

	(void)state;
	fill(&rows);
	free(rows.items[1].name);
	rows.items[1].name = strdup("a\"b\n\xff.tail");
	assert_int_equal(kx_put_call_json(out, &j, &rows, &v, 0), 0);
	line = json_loads(text_of(out), 0, NULL);
	assert_non_null(line);
	assert_int_equal(json_integer_value(json_object_get(line, "schema")), 1);
	assert_int_equal(json_integer_value(json_object_get(line, "interval")), 2);
	assert_int_equal(json_integer_value(json_object_get(line, "calls")), 6);
	assert_int_equal(json_integer_value(json_object_get(line, "missed")), 5);
	assert_true(json_is_true(json_object_get(line, "last")));
	functions = json_object_get(line, "functions");
	assert_int_equal(json_array_size(functions), 3);
	f = json_array_get(functions, 0);
	assert_string_equal(json_string_value(json_object_get(f, "name")), "a\"b\n?.tail");
	assert_int_equal(json_real_value(json_object_get(f, "share_percent")) * 1000, 50000);
	f = json_array_get(functions, 1);
	assert_int_equal(json_integer_value(json_object_get(f, "total_calls")), 3);
	assert_int_equal(json_integer_value(json_object_get(f, "sum_ns")), 4000);
	assert_int_equal(json_array_size(json_object_get(f, "buckets")), 2);
	assert_null(strchr(out->memory, '\n')[1] ? out->memory : NULL);
	json_decref(line);
	free_text(out);
	kx_call_rows_free(&rows);
}

static void assert_label(const char *text, const char *want)
{
	struct kx_text_out *out = new_text();

	kx_put_label(out, text);
	assert_string_equal(text_of(out), want);
	free_text(out);
}

/* Labels are valid, and different for different names. */
static void test_labels(void **state)
{
	(void)state;
	assert_label("f(int)", "\"f(int)\"");
	assert_label("a\"b", "\"a\\\"b\"");
	assert_label("a\\b", "\"a\\\\\\\\b\"");
	assert_label("a\nb", "\"a\\\\nb\"");
	assert_label("a\\nb", "\"a\\\\\\\\nb\"");
	assert_label("\xff{}\x1b", "\"\\\\xff{}\\\\x1b\"");
	assert_label("\xc3\xa4", "\"\xc3\xa4\"");
}

static uint64_t sample(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	if (!at)
		fail_msg("'%s' is not in %s", line, text);
	return strtoull(at + strlen(line), NULL, 10);
}

static void test_metrics(void **state)
{
	static const uint64_t twice[] = { 1023, 1024 };
	struct kx_text_out *out = new_text();
	struct kx_call_rows rows = { 0 };
	struct kx_call_stats now = { 0 };
	char *text;

	(void)state;
	fill(&rows);
	/* another function of the same name, as static ones have: one series */
	assert_int_equal(kx_call_rows_add(&rows, "often", "prog"), 0);
	end_calls(&now, twice, 2);
	kx_call_row_update(&rows.items[4], &now);
	assert_int_equal(kx_put_metrics(out, &rows), 0);
	text = text_of(out);
	assert_int_equal(sample(text, "\nkxray_calls_total{function=\"often\",module=\"prog\"} "),
			 5);
	assert_int_equal(sample(text, "\nkxray_calls_total{function=\"no_exit\",module=\"prog\"} "),
			 2);
	assert_null(strstr(text, "never"));
#define OFTEN "\nkxray_call_duration_seconds_bucket{function=\"often\",module=\"prog\",le="
	/* 1000, 1000, 1023 ns are at most 1.023 us; 1024 and 2000 are not */
	assert_int_equal(sample(text, OFTEN "\"5.11e-07\"} "), 0);
	assert_int_equal(sample(text, OFTEN "\"1.023e-06\"} "), 3);
	assert_int_equal(sample(text, OFTEN "\"2.047e-06\"} "), 5);
	assert_int_equal(sample(text, OFTEN "\"34.359738367\"} "), 5);
	assert_int_equal(sample(text, OFTEN "\"+Inf\"} "), 5);
	assert_int_equal(
		sample(text,
		       "\nkxray_call_duration_seconds_count{function=\"often\",module=\"prog\"} "),
		5);
	assert_non_null(strstr(text, "\nkxray_call_duration_seconds_sum{function=\"often\",module="
				     "\"prog\"} 6.047e-06\n"));
	assert_int_equal(sample(text, "\nkxray_functions "), 4);
	free_text(out);
	kx_call_rows_free(&rows);
}

static int put_hello(void *ctx, struct kx_text_out *out)
{
	if (!ctx)
		return -ENOMEM;
	kx_text_str(out, ctx);
	return 0;
}

/* Sends @request to the server, which runs in this thread; its whole answer. */
static void exchange(struct kx_metrics_server *s, const char *request, char *answer, size_t size)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(kx_metrics_server_port(s)),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	size_t used = 0;
	ssize_t n = 1;

	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
	while (n > 0) {
		struct pollfd fds[] = { { .fd = kx_metrics_server_fd(s), .events = POLLIN },
					{ .fd = fd, .events = POLLIN } };

		poll(fds, 2, kx_metrics_server_poll(s));
		kx_metrics_server_poll(s);
		if (!fds[1].revents)
			continue;
		n = read(fd, answer + used, size - 1 - used);
		used += n > 0 ? (size_t)n : 0;
	}
	answer[used] = 0;
	close(fd);
}

static void test_server(void **state)
{
	static char text[] = "hello 1\n";
	struct kx_metrics_server *s, *other;
	struct kx_err err = { 0 };
	char answer[4096];

	(void)state;
	assert_int_equal(kx_metrics_server_open(0, put_hello, text, &s, &err), 0);
	exchange(s, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", answer,
		 sizeof(answer));
	assert_ptr_equal(strstr(answer, "HTTP/1.1 200 OK\r\n"), answer);
	assert_non_null(strstr(answer, "\r\n\r\nhello 1\n"));
	exchange(s, "DELETE /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", answer,
		 sizeof(answer));
	assert_ptr_equal(strstr(answer, "HTTP/1.1 405 "), answer);
	exchange(s, "GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", answer,
		 sizeof(answer));
	assert_ptr_equal(strstr(answer, "HTTP/1.1 404 "), answer);
	assert_int_equal(
		kx_metrics_server_open(kx_metrics_server_port(s), put_hello, text, &other, &err),
		-EADDRINUSE);
	assert_non_null(strstr(err.text, "Address already in use"));
	kx_metrics_server_close(s);
	assert_int_equal(kx_metrics_server_open(0, put_hello, NULL, &s, &err), 0);
	exchange(s, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", answer,
		 sizeof(answer));
	assert_ptr_equal(strstr(answer, "HTTP/1.1 500 "), answer);
	kx_metrics_server_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interval),      cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_interpolation), cmocka_unit_test(test_order),
		cmocka_unit_test(test_table),	      cmocka_unit_test(test_widths),
		cmocka_unit_test(test_histogram),     cmocka_unit_test(test_json),
		cmocka_unit_test(test_labels),	      cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
