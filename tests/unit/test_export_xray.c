// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 12 s
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "export_run.h"
#include "export_xray_rig.h"
#include "fdr_bytes.h"
#include "llvm_xray.h"

static void check_nothing_is_left_out(void)
{
	static const char *const parts[] = {
		"/70001 \xc3\xa4 \"x\" p,;q\n", "70001>268435455 cpu 65535\n",
		("9000000010 70001>2 cpu 65535 1000000000000000 2000000000000000 3000000000000000 "
		 "4000000000000000 5000000000000000 6000000000000000 7000000000000000\n"),
		"9000000030 70001<2 1\n", "70001 event mine 16 bytes...\n", "70001 cpu 0\n",
		"70001 lost 9000000040..9000000060 1 2\n", "9000000060 70001 at 7fff123456789abc\n",
		"9000000070 70001<4 2\n9000000070 70001<3 2\n", "9000000100 70001<268435455 0 = -2\n",
		"9000000130 70001>5 cpu 0\n9000000130 70001<5 3\n",
	};
	char *text = dump_of(output_path, NULL, NULL, true, NULL);

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strstr(text, parts[i]))
			fail_msg("'%s' is not in\n%s", parts[i], text);
	free(text);
}

static void test_from_any_version_to_any(void **state)
{
	(void)state;
	for (unsigned version = 1; version <= 5; version++) {
		struct bytes b = { 0 };

		put_everything(&b, version);
		save(trace_path, b.data, b.size);
		check_all_versions(version == 5);
		check_nothing_is_left_out();
		release(&b);
	}
}

static void test_from_basic_mode(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	header(&b, 3, 0, 1000000000, 0);
	for (uint32_t i = 0; i < 100; i++) {
		naive(&b, ENTRY_ARGS, 1, 5, 1000 + i * 10, 2, 1);
		naive_argument(&b, 5, 2, 1, i);
		naive(&b, ENTRY, 2, 6, 1001 + i * 10, 3, 1);
		naive(&b, EXIT, 1, 5, 1005 + i * 10, 2, 1);
		naive(&b, TAIL_EXIT, 2, 6, 1006 + i * 10, 3, 1);
	}
	save(trace_path, b.data, b.size);
	check_all_versions(true);
	release(&b);
}

static void test_unbalanced_is_repaired(void **state)
{
	struct kx_calls_totals totals;
	struct exported e;
	struct bytes b = { 0 };
	char *text;

	(void)state;
	header(&b, 5, 1, 1000000000, 4096);
	preamble(&b, 5, 1, 2, 0, 1000);
	function(&b, EXIT, 9, 1);
	function(&b, ENTRY, 1, 1);
	function(&b, ENTRY, 2, 1);
	function(&b, ENTRY, 3, 1);
	function(&b, EXIT, 1, 6);
	end_extents(&b);
	preamble(&b, 5, 1, 3, 0, 500); /* before the other thread: llvm-xray account fails */
	function(&b, ENTRY, 1, 1);
	function(&b, EXIT, 1, 1);
	end_extents(&b);
	save(trace_path, b.data, b.size);
	check_all_versions(true);
	run_export(&kx_exporter_xray, NULL, NULL, false, &e);
	text = dump_of(output_path, NULL, NULL, true, &totals);
	assert_non_null(strstr(text, "1010 2<3 2\n1010 2<2 2\n1010 2<1 0\n"));
	assert_int_equal(totals.orphans, 0);
	assert_int_equal(totals.repaired, 2);
	assert_int_equal(totals.calls, 4);
	free(text);
	free_export(&e);
	release(&b);
}

static void test_filters_and_map(void **state)
{
	static const char *const names_of[] = { "one", "two", "three" };
	const char *two = "two";
	const struct kx_call_filter filter = { .exclude = &two, .nexclude = 1, .to_ns = 50 };
	char *filtered, *again, map[80];
	struct kx_map read;
	struct kx_err err = { 0 };
	struct exported e;
	struct bytes b = { 0 };

	(void)state;
	header(&b, 5, 1, 1000000000, 4096);
	preamble(&b, 5, 1, 2, 0, 1000);
	for (uint32_t i = 1; i <= 3; i++) {
		function(&b, ENTRY_ARGS, i, 10);
		call_argument(&b, 0x400000 + i);
	}
	for (uint32_t i = 3; i; i--)
		function(&b, EXIT, i, 10);
	end_extents(&b);
	save(trace_path, b.data, b.size);
	write_map(names_of, 3, "{\"callers\":true,\"lost\":0}");
	run_export(&kx_exporter_xray, NULL, &filter, false, &e);
	assert_int_equal(e.result, 0);
	/* its own map is written beside it: names, session, callers */
	snprintf(map, sizeof(map), "%s.map", output_path);
	assert_int_equal(kx_map_read(map, &read, &err), 0);
	assert_int_equal(read.nfunctions, 3);
	assert_string_equal(kx_map_name(&read, 3), "three");
	assert_true(json_is_true(json_object_get(read.session, "callers")));
	kx_map_free(&read);
	filtered = dump_of(trace_path, NULL, &filter, true, NULL);
	assert_string_equal(filtered,
			    "1010 thread 1/2  \n"
			    "1010 2 cpu 0\n"
			    "1010 2>1 cpu 0 from 400001\n"
			    "1030 2>3 cpu 0 from 400003\n"
			    "1040 2<3 0\n"
			    "1050 2<1 3\n");
	again = dump_of(output_path, NULL, NULL, true, NULL);
	/* open at the end of the range, so open at the end of the exported trace */
	assert_non_null(strstr(again, "1040 2<3 0\n1040 2<1 3\n"));
	free(filtered);
	free(again);
	free_export(&e);
	/* without a map, an older one would stay and give wrong names */
	snprintf(map, sizeof(map), "%s.map", trace_path);
	unlink(map);
	run_export(&kx_exporter_xray, NULL, NULL, false, &e);
	assert_non_null(strstr(e.notices, "out.map belongs to an older trace"));
	free_export(&e);
	snprintf(map, sizeof(map), "%s.map", output_path);
	assert_int_equal(unlink(map), 0);
	release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_any_version_to_any),
		cmocka_unit_test(test_from_basic_mode),
		cmocka_unit_test(test_unbalanced_is_repaired),
		cmocka_unit_test(test_filters_and_map),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
