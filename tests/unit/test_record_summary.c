// SPDX-License-Identifier: BSD-2-Clause
/* The JSON object at the end of `kxray record --json`. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/record_summary.h"

/* Paths are bytes: one that is not UTF-8 still gets its object. */
static void paths_need_not_be_utf8(void **state)
{
	const struct kx_flight_options flight = { 0 };
	const struct kx_recording_options o = { .output = "/tmp/\xff.xray", .flight = &flight };
	const struct kx_recording_result r = { .clock = "tsc", .hz_origin = "cpuid", .mechanism = "uprobe", .files = 2,
					       .newest = "/tmp/\xff.2.xray", .flight.last = "/tmp/\xff.1.xray" };
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	json_t *j;

	(void)state;
	assert_non_null(to);
	assert_int_equal(kx_record_summary_print_json(&o, &r, to), 0);
	fclose(to);
	j = json_loads(text, 0, NULL);
	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "output")), "/tmp/?.xray");
	assert_string_equal(json_string_value(json_object_get(j, "newest_file")), "/tmp/?.2.xray");
	assert_string_equal(json_string_value(json_object_get(j, "newest_dump")), "/tmp/?.1.xray");
	json_decref(j);
	free(text);
}

static json_t *summary_of(const struct kx_recording_result *r)
{
	const struct kx_recording_options o = { .output = "t.xray" };
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	json_t *j;

	assert_non_null(to);
	assert_int_equal(kx_record_summary_print_json(&o, r, to), 0);
	fclose(to);
	j = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(j);
	return j;
}

static void gaps_are_there_if_there_were_any(void **state)
{
	struct kx_recording_result r = { .clock = "tsc", .hz_origin = "cpuid", .mechanism = "uprobe" };
	json_t *j = summary_of(&r);

	(void)state;
	assert_null(json_object_get(j, "return_gaps"));
	json_decref(j);
	r.return_gaps = (struct kx_return_gaps){ .threads = 3, .ns = 150000000 };
	j = summary_of(&r);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "return_gaps"), "threads")), 3);
	assert_true(json_real_value(json_object_get(json_object_get(j, "return_gaps"), "ms")) == 150.0);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_need_not_be_utf8),
		cmocka_unit_test(gaps_are_there_if_there_were_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
