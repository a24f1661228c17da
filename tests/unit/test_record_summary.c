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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_need_not_be_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
