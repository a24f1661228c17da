// SPDX-License-Identifier: BSD-2-Clause
/* The status line's text: what it says, and what it leaves out where the terminal is narrow. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "cmd/status_line.h"

static const struct kx_recording_status all = {
	.seconds = 5.5,
	.left = 6.2,
	.interval = 2,
	.events = 1000000,
	.new_events = 824062,
	.lost = 0,
	.bytes = 3300000,
	.dumps = 1,
	.hottest = "parse_line",
	.hottest_share = 0.414,
};

static void check(const struct kx_recording_status *s, enum kx_status_kind kind, unsigned columns,
		  const char *want)
{
	struct kx_screen screen = { .columns = columns };
	char *text = kx_status_text(s, kind, &screen);

	assert_non_null(text);
	assert_string_equal(text, want);
	assert_true(kx_display_width(text, strlen(text)) <= columns);
	free(text);
}

static void test_parts(void **state)
{
	struct kx_recording_status s = all;

	(void)state;
	check(&s, KX_STATUS_TRACE, 120,
	      "kxray: 0:07 left, 412,031 events/s, 0 lost, 3.3 MB, hottest parse_line 41 %");
	check(&s, KX_STATUS_FLIGHT, 120,
	      "kxray: 0:07 left, 412,031 events/s, 0 lost, 1 dump of 3.3 MB, hottest parse_line 41 "
	      "%");
	check(&s, KX_STATUS_COUNT, 120,
	      "kxray: 0:07 left, 412,031 calls/s, hottest parse_line 41 %");
	s.hottest = NULL;
	check(&s, KX_STATUS_TRACE, 120, "kxray: 0:07 left, 412,031 events/s, 0 lost, 3.3 MB");
}

static void test_times_and_sizes(void **state)
{
	static const struct {
		double seconds, left;
		uint64_t bytes;
		const char *want;
	} rows[] = {
		{ 0.99, -1, 0, "kxray: 0:00, 0 events/s, 0 lost, 0.0 kB" },
		{ 61.2, -1, 99949, "kxray: 1:01, 0 events/s, 0 lost, 99.9 kB" },
		{ 3600, -1, 999949, "kxray: 1:00:00, 0 events/s, 0 lost, 1000 kB" },
		{ 360000, -1, 999950, "kxray: 100:00:00, 0 events/s, 0 lost, 1.0 MB" },
		{ 1, 0, 123456789012, "kxray: 0:00 left, 0 events/s, 0 lost, 123 GB" },
		{ 1, 3599.2, 5000000000000000, "kxray: 1:00:00 left, 0 events/s, 0 lost, 5000 TB" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kx_recording_status s = { .seconds = rows[i].seconds,
						 .left = rows[i].left,
						 .bytes = rows[i].bytes,
						 .interval = 1 };

		check(&s, KX_STATUS_TRACE, 80, rows[i].want);
	}
}

/* The name is shortened down to 8 columns, then parts go: what is lost last, if it is anything. */
static void test_narrow(void **state)
{
	struct kx_recording_status s = all;

	(void)state;
	check(&s, KX_STATUS_TRACE, 75,
	      "kxray: 0:07 left, 412,031 events/s, 0 lost, 3.3 MB, hottest parse_line 41 %");
	check(&s, KX_STATUS_TRACE, 73,
	      "kxray: 0:07 left, 412,031 events/s, 0 lost, 3.3 MB, hottest pa…_line 41 %");
	check(&s, KX_STATUS_TRACE, 72, "kxray: 0:07 left, 412,031 events/s, 0 lost, 3.3 MB");
	check(&s, KX_STATUS_TRACE, 49, "kxray: 0:07 left, 412,031 events/s, 0 lost");
	check(&s, KX_STATUS_TRACE, 41, "kxray: 0:07 left, 412,031 events/s");
	check(&s, KX_STATUS_TRACE, 33, "kxray: 0:07 left");
	check(&s, KX_STATUS_TRACE, 15, "");
	s.lost = 12;
	check(&s, KX_STATUS_TRACE, 41, "kxray: 0:07 left, 12 lost");
}

static void test_color(void **state)
{
	struct kx_recording_status s = all;
	struct kx_screen screen = { .columns = 60, .color = true };
	char *text = kx_status_text(&s, KX_STATUS_TRACE, &screen);

	(void)state;
	assert_string_equal(text, "kxray: 0:07 left, 412,031 events/s, 0 lost, 3.3 MB");
	free(text);
	s.lost = 1234;
	text = kx_status_text(&s, KX_STATUS_TRACE, &screen);
	assert_string_equal(
		text, "kxray: 0:07 left, 412,031 events/s, \x1b[31m1,234 lost\x1b[0m, 3.3 MB");
	free(text);
}

/* No name is too long or too strange, and no width too small. */
static void test_any_width(void **state)
{
	static const char *const names[] = {
		"f", "ns::Index<unsigned long, ns::Row>::insert_or_update(unsigned long)",
		"\xe5\x87\xbd\xe6\x95\xb0\xe5\x87\xbd\xe6\x95\xb0\xe5\x87\xbd\xe6\x95\xb0",
		"a\033[2Jb\nc"
	};
	struct kx_recording_status s = all;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		s.hottest = names[i];
		for (unsigned columns = 1; columns < 200; columns++) {
			struct kx_screen screen = { .columns = columns };
			char *text = kx_status_text(&s, KX_STATUS_TRACE, &screen);

			assert_non_null(text);
			assert_true(kx_display_width(text, strlen(text)) <= columns);
			assert_null(strpbrk(text, "\033\n"));
			free(text);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),	  cmocka_unit_test(test_times_and_sizes),
		cmocka_unit_test(test_narrow),	  cmocka_unit_test(test_color),
		cmocka_unit_test(test_any_width),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
