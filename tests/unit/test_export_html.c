// SPDX-License-Identifier: BSD-2-Clause
/* The page of export -f html, read by tests/readers/html.py, and the parts that bound its size. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "exporters/html/flame.h"
#include "exporters/html/slices.h"
#include "fast_size.h"
#include "known_trace.h"

extern const struct kx_exporter kx_exporter_html;

static const char *exported(const char *trace, json_t *session, bool no_map)
{
	const char *out = in_dir("out");

	assert_int_equal(known_export(&kx_exporter_html, trace, out, session, no_map), 0);
	json_decref(session);
	return out;
}

static void test_known_trace(void **state)
{
	static const char expected[] =
		"thread 100 70000 " KNOWN_WORKER " " KNOWN_PROCESS "\n"
		"thread 200 1 \"\" \"\"\n"
		"thread 0 7 \"c\" \"\"\n"
		KNOWN_MAIN " end=\"repaired\" module=\"prog\"\n"
		KNOWN_2 " module=\"prog\"\n"
		KNOWN_3 " end=\"tail jump\" module=\"libx.so\"\n"
		KNOWN_4 " end=\"open\" module=\"libx.so\"\n"
		KNOWN_5 " end=\"open\"\n"
		KNOWN_B0 " module=\"prog\"\n"
		KNOWN_B1 " module=\"prog\"\n"
		KNOWN_B2 " module=\"prog\"\n"
		KNOWN_C " module=\"libx.so\"\n"
		"mark 100 70000 4294967298 \"hello \\\\x01 \\\"q\\\"\"\n"
		"mark 100 70000 4294967346 \"lost 12 events\" gap_ns=46\n";

	(void)state;
	known_write(in_dir("trace"));
	assert_string_equal(known_read("html.py", "", exported(in_dir("trace"), NULL, false)), expected);
	/* total of outermost calls with a measured end: main's are 20 and 0 ns */
	assert_string_equal(known_read("html.py", "--functions", in_dir("out")),
			    "1 0 \"#5\"\n"
			    "1 2 " KNOWN_NAME2 "\n"
			    "1 1 " KNOWN_NAME3 "\n"
			    "2 5 \"foo::bar()\"\n"
			    "4 20 \"main\"\n");
}

static json_t *head_of(const char *file)
{
	json_t *head = json_loads(known_read("html.py", "--head", file), 0, NULL);

	assert_non_null(head);
	return head;
}

static long long number_of(const json_t *object, const char *key)
{
	assert_true(json_is_integer(json_object_get(object, key)));
	return json_integer_value(json_object_get(object, key));
}

static void test_head(void **state)
{
	json_t *session = json_pack(
		"{s:{s:s}, s:s, s:i, s:[{s:i, s:s, s:[s, s]}]}", "host", "name", "a\"b</script>", "started",
		"2026-01-31T23:59:59.5Z", "lost", 12, "processes", "pid", 100, "name", "</script><b>", "command",
		"./x", "--a='\"</script>");
	const json_t *process;
	json_t *head;

	(void)state;
	known_write(in_dir("trace"));
	head = head_of(exported(in_dir("trace"), session, false));
	assert_string_equal(json_string_value(json_object_get(head, "host")), "a\"b</script>");
	process = json_array_get(json_object_get(head, "processes"), 0);
	assert_string_equal(json_string_value(json_object_get(process, "name")), "</script><b>");
	assert_string_equal(json_string_value(json_array_get(json_object_get(process, "command"), 1)),
			    "--a='\"</script>");
	assert_int_equal(number_of(head, "lost"), 12);
	assert_int_equal(number_of(head, "calls"), 9);
	assert_int_equal(number_of(head, "open"), 2);
	assert_int_equal(number_of(head, "repaired"), 1);
	assert_int_equal(number_of(head, "merged_slices"), 0);
	json_decref(head);
}

/* Names that would end the data, an attribute or the page if they stood there as they are. */
static void test_hostile_names(void **state)
{
	static const char *const names[] = { "</script><script>alert(1)</script>", "<!--<script>", "\"'`${x}&amp;\\",
					     "\xff\xfe</body>\x80" };
	static const char *const read[] = { "</script><script>alert(1)</script>", "<!--<script>", "\"'`${x}&amp;\\",
					    "?" "?</body>?" };
	const char *symbols[4], *out, *text;
	char *line;

	(void)state;
	known_write(in_dir("trace"));
	for (size_t i = 0; i < 4; i++) {
		symbols[i] = known_functions[i].symbol;
		known_functions[i].symbol = names[i];
	}
	out = exported(in_dir("trace"), NULL, false);
	for (size_t i = 0; i < 4; i++)
		known_functions[i].symbol = symbols[i];
	text = known_read("html.py", "--functions", out);
	for (size_t i = 0; i < 4; i++) {
		json_t *name = json_string(read[i]);

		line = json_dumps(name, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
		assert_non_null(strstr(text, line));
		free(line);
		json_decref(name);
	}
	sh("! grep -a -q -e 'alert(1)' -e 'x}&amp;' out");
}

/* What a thread did when it was on no CPU, and instants, are rows of their own. */
static void test_sched_and_instants(void **state)
{
	static const char expected[] =
		"thread 1 2 \"t\" \"p\"\n"
		"call 1 2 0 0 500 \"main\" module=\"prog\"\n"
		"mark 1 2 300 \"fault write\"\n"
		"sched 1 2 0 100 \"CPU 3\"\n"
		"sched 1 2 100 100 \"sleeping\"\n"
		"sched 1 2 200 50 \"runnable\"\n"
		"sched 1 2 250 250 \"CPU 3\"\n";
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	int fd;

	(void)state;
	w = known_writer(in_dir("trace"), &fd);
	t = kx_fdr_writer_thread(w, 1, 2, "t", "p");
	must(kx_fdr_entry(t, 1000, 3, 1, NULL, 0), NULL);
	known_note(t, 1500, "kxray:sched {\"off\":300,\"state\":\"S\",\"wait\":100,\"by\":9}");
	known_note(t, 1600, "kxray:fault {\"address\":\"0x7f0012345000\",\"access\":\"write\",\"function\":1}");
	must(kx_fdr_exit(t, 2000, 3, 1, false), NULL);
	known_end(w, fd);
	assert_string_equal(known_read("html.py", "", exported(in_dir("trace"), json_pack("{s:b}", "sched", 1), false)),
			    expected);
}

static void test_empty(void **state)
{
	(void)state;
	known_write_empty(in_dir("trace"));
	assert_string_equal(known_read("html.py", "", exported(in_dir("trace"), NULL, true)), "");
}

static void test_many_threads(void **state)
{
	const int n = fast_size(10000, 1000);
	char expected[64];

	(void)state;
	known_write_threads(in_dir("trace"), n);
	snprintf(expected, sizeof(expected), "%d %d \"main\"\n", n, 10 * n);
	assert_string_equal(known_read("html.py", "--functions", exported(in_dir("trace"), NULL, false)), expected);
}

static void test_disk_full(void **state)
{
	(void)state;
	known_write_threads(in_dir("trace"), 2000);
	assert_int_equal(known_export(&kx_exporter_html, in_dir("trace"), "/dev/full", NULL, false), -ENOSPC);
}

/* Slices */

static void add_slice(struct kx_html_slices *s, uint32_t row, uint64_t start, uint64_t end, uint32_t name)
{
	const struct kx_html_slice slice = { .start = start, .end = end, .name = name, .count = 1 };

	assert_int_equal(kx_html_slice_add(s, row, slice), 0);
}

/* Slice @index of the row. */
static const struct kx_html_slice *slice_of(const struct kx_html_slices *s, uint32_t row, size_t index)
{
	const struct kx_html_chunk *c = s->rows[row].first;

	assert_true(index < s->rows[row].n);
	for (; index >= kx_html_chunk_room(c); c = c->next)
		index -= kx_html_chunk_room(c);
	return &c->slices[index];
}

static void test_slices_are_bounded(void **state)
{
	struct kx_html_slices s = { .most = 100, .duration = 1000000 };
	uint64_t busy = 0, count = 0, longest = 0;
	uint32_t rows[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(kx_html_row_new(&s, 0, KX_HTML_CALLS, i, &rows[i]), 0);
	for (uint32_t i = 0; i < 10000; i++) {
		uint64_t took = i == 5000 ? 90000 : 10 + i % 7;

		add_slice(&s, rows[i % 2], 100 * i, 100 * i + took, i == 5000 ? 7 : 1);
		assert_true(s.n <= 100);
	}
	assert_int_equal(s.rows[0].n + s.rows[1].n, s.n);
	for (size_t i = 0; i < s.n; i++) {
		bool first = i < s.rows[0].n;
		const struct kx_html_slice *slice =
			slice_of(&s, first ? rows[0] : rows[1], first ? i : i - s.rows[0].n);

		busy += slice->busy;
		count += slice->count;
		if (slice->name == 7) {
			longest = slice->end - slice->start;
			assert_int_equal(slice->count, 1);
		}
	}
	/* the call of function 7 is far above the limit: it stays alone, and the row's next ones begin after it */
	assert_int_equal(longest, 90000);
	assert_int_equal(count, 10000);
	assert_true(s.limit > 0 && s.limit < 90000);
	assert_true(busy <= 90000 + 10000 * 16 && busy > 90000 + 5000 * 10);
	assert_true(s.n > 20);
	kx_html_slices_free(&s);
}

static void test_merged_slices(void **state)
{
	struct kx_html_slices s = { .most = 4, .duration = 1024 };
	uint32_t row;

	(void)state;
	assert_int_equal(kx_html_row_new(&s, 0, KX_HTML_CALLS, 0, &row), 0);
	add_slice(&s, row, 0, 5, 1);
	add_slice(&s, row, 10, 19, 2);
	add_slice(&s, row, 20, 25, 3);
	add_slice(&s, row, 30, 34, 4);
	assert_int_equal(s.limit, 0);
	add_slice(&s, row, 1000, 1001, 5);
	/* a quarter of 1024 / 4 ticks: the first four begin in the same interval; the longest gives the name */
	assert_int_equal(s.limit, 64);
	assert_int_equal(s.n, 2);
	assert_int_equal(slice_of(&s, row, 0)->start, 0);
	assert_int_equal(slice_of(&s, row, 0)->end, 34);
	assert_int_equal(slice_of(&s, row, 0)->busy, 5 + 9 + 5 + 4);
	assert_int_equal(slice_of(&s, row, 0)->count, 4);
	assert_int_equal(slice_of(&s, row, 0)->name, 2);
	assert_int_equal(slice_of(&s, row, 1)->count, 1);
	/* a long one is not merged, one that begins in the interval behind it is */
	add_slice(&s, row, 1002, 1300, 6);
	add_slice(&s, row, 1301, 1302, 7);
	add_slice(&s, row, 1303, 1304, 8);
	assert_int_equal(s.n, 4);
	assert_int_equal(slice_of(&s, row, 2)->count, 1);
	assert_int_equal(slice_of(&s, row, 3)->count, 2);
	kx_html_slices_free(&s);
}

/* Gaps of losses may overlap. */
static void test_early_slices(void **state)
{
	struct kx_html_slices s = { .most = 4, .duration = 1024 };
	uint32_t row;

	(void)state;
	assert_int_equal(kx_html_row_new(&s, 0, KX_HTML_GAPS, 0, &row), 0);
	add_slice(&s, row, 10, 50, 0);
	add_slice(&s, row, 30, 60, 0);
	add_slice(&s, row, 20, 55, 0);
	assert_int_equal(s.n, 3);
	assert_int_equal(slice_of(&s, row, 1)->start, 50);
	assert_int_equal(slice_of(&s, row, 1)->busy, 10);
	assert_int_equal(slice_of(&s, row, 2)->start, 60);
	assert_int_equal(slice_of(&s, row, 2)->end, 60);
	assert_int_equal(slice_of(&s, row, 2)->busy, 0);
	kx_html_slices_free(&s);
}

/* Stacks */

static uint32_t same(void *ctx, uint32_t func)
{
	(void)ctx;
	return func;
}

static void test_small_stacks_are_added_up(void **state)
{
	struct kx_html_flame f = { 0 };
	struct kx_bytes out = { 0 };
	uint32_t thread, outer, node;
	/* thread 3; function 1 with 5 of its own; 2, the longest below it; what 20 others took: 20 * 10, 20 calls */
	const uint8_t expected[] = { 0, 3, 0, 0, 1, 1, 5, 1, 1, 99, 200, 1, 20, 2, 2, 144, 3, 1 };

	(void)state;
	assert_int_equal(kx_html_flame_init(&f), 0);
	f.most = 4;
	assert_int_equal(kx_html_flame_thread(&f, 3, &thread), 0);
	assert_int_equal(kx_html_flame_enter(&f, thread, 1, &outer), 0);
	kx_html_flame_leave(&f, outer, 5);
	for (uint32_t i = 0; i < 21; i++) {
		assert_int_equal(kx_html_flame_enter(&f, outer, 2 + i, &node), 0);
		kx_html_flame_leave(&f, node, i ? 10 : 400);
	}
	assert_int_equal(kx_html_flame_encode(&f, &out, 1000000000, same, NULL, 99), 0);
	assert_int_equal(f.dropped, 20);
	assert_int_equal(out.size, sizeof(expected));
	assert_memory_equal(out.data, expected, sizeof(expected));
	kx_bytes_free(&out);
	kx_html_flame_free(&f);
}

/* What is kept of ended threads becomes too small with later ones, and is added up then. */
static void test_stacks_of_many_threads(void **state)
{
	enum { THREADS = 14, STACKS = 10 };
	struct kx_html_flame f = { 0 };
	struct kx_bytes out = { 0 };
	uint32_t thread, outer, node;
	/* of all but the last two threads: nothing of its own, and a node with all its time and calls */
	const uint8_t small[] = { 0, 0, 1, 99 };
	size_t at = 0, most_kept = 0;

	(void)state;
	assert_int_equal(kx_html_flame_init(&f), 0);
	f.most = 2 * (STACKS + 1);
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(kx_html_flame_thread(&f, i, &thread), 0);
		assert_int_equal(kx_html_flame_enter(&f, thread, 1, &outer), 0);
		kx_html_flame_leave(&f, outer, 0);
		for (uint32_t k = 1; k < STACKS; k++) {
			assert_int_equal(kx_html_flame_enter(&f, outer, 256 * k, &node), 0);
			/* of each thread larger than all stacks of the one before it */
			kx_html_flame_leave(&f, node, 16ull << 4 * i);
		}
		most_kept = f.nkept > most_kept ? f.nkept : most_kept;
	}
	assert_int_equal(kx_html_flame_encode(&f, &out, 1000000000, same, NULL, 99), 0);
	for (uint32_t i = 0; i < THREADS - 2; i++) {
		uint64_t ticks = 0;

		assert_int_equal(out.data[at], 0);
		assert_int_equal(out.data[at + 1], i);
		assert_memory_equal(out.data + at + 2, small, sizeof(small));
		at += 2 + sizeof(small);
		for (unsigned shift = 0;; shift += 7) {
			ticks |= (uint64_t)(out.data[at] & 0x7f) << shift;
			if (out.data[at++] < 0x80)
				break;
		}
		assert_int_equal(ticks, (STACKS - 1) * (16ull << 4 * i));
		assert_int_equal(out.data[at++], STACKS);
	}
	assert_int_equal(f.dropped, (THREADS - 2) * STACKS);
	/* not all at once */
	assert_true(most_kept < THREADS * (STACKS + 1) / 2 + f.most);
	kx_bytes_free(&out);
	kx_html_flame_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_trace),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_sched_and_instants),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_slices_are_bounded),
		cmocka_unit_test(test_merged_slices),
		cmocka_unit_test(test_early_slices),
		cmocka_unit_test(test_small_stacks_are_added_up),
		cmocka_unit_test(test_stacks_of_many_threads),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
