// SPDX-License-Identifier: BSD-2-Clause
/* What a map says beside names: where functions are defined, and which functions are at an address. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/caller_set.h"
#include "trace/map_file.h"
#include "trace/symbolizer.h"
#include "folder.h"

static char path[64];

static struct kx_map_module modules[] = {
	{ .name = "a", .path = "/a", .build_id = "" },
	{ .name = "lib", .path = "/lib", .build_id = "" },
};
static struct kx_map_function functions[] = {
	{ "main", 0x1000, 0, 0x40 },
	{ "_ZN2ns1fEi", 0x1040, 0, 0x10 },
	{ "no_place", 0x1100, 0, 0x10 },
};
static struct kx_map_function callers[] = {
	{ "before", 0x0f00, 0, 0x20 },
	{ "relay@@V_1", 0x1000, 1, 0x30 },
	{ "_RNvC7mycrate4main", 0x1040, 1, 0x30 },
};
static const struct kx_map_place places[] = {
	{ "/src/main.c", 7 }, { "/src/f.cpp", 4294967295u }, { NULL, 9 },
};

static struct kx_map made(void)
{
	return (struct kx_map){ .modules = modules, .nmodules = 2, .functions = functions, .nfunctions = 3,
				.callers = callers, .ncallers = 3, .places = places };
}

static void write_and_read(struct kx_map *map, struct kx_map *back)
{
	struct kx_err err = { 0 };

	if (kx_map_write(path, map, &err) || (back && kx_map_read(path, back, &err)))
		fail_msg("%s", err.text);
}

static void check_place(const struct kx_map *map, uint32_t id, const char *file, uint32_t line)
{
	struct kx_map_place place = { "unset", 1 };

	assert_int_equal(kx_map_get_place(map, id, &place), file != NULL);
	assert_int_equal(place.line, line);
	if (file)
		assert_string_equal(place.file, file);
	else
		assert_null(place.file);
}

static void test_places(void **state)
{
	struct kx_map map = made(), back, again;

	(void)state;
	write_and_read(&map, &back);
	assert_true(kx_map_has_places(&back));
	for (int turn = 0; turn < 2; turn++) {
		check_place(&back, 0, NULL, 0);
		check_place(&back, 1, "/src/main.c", 7);
		check_place(&back, 2, "/src/f.cpp", 4294967295u);
		check_place(&back, 3, NULL, 0);
		check_place(&back, 4, NULL, 0);
		if (turn)
			break;
		/* what was read is written again as it was */
		write_and_read(&back, &again);
		kx_map_free(&back);
		back = again;
	}
	kx_map_free(&back);
	map.places = NULL;
	write_and_read(&map, &back);
	assert_false(kx_map_has_places(&back));
	check_place(&back, 1, NULL, 0);
	kx_map_free(&back);
}

static void check_name(struct kx_map *map, uint32_t module, uint64_t address, const char *name)
{
	const char *got = kx_map_name_at(map, module, address);

	if (name) {
		assert_non_null(got);
		assert_string_equal(got, name);
	} else {
		assert_null(got);
	}
}

static void test_names_at_addresses(void **state)
{
	struct kx_symbolizer names = { .has_map = true };
	struct kx_map map = made(), *back = &names.map;

	(void)state;
	write_and_read(&map, back);
	assert_int_equal(back->ncallers, 3);
	check_name(back, 0, 0xeff, NULL);
	check_name(back, 0, 0xf00, "before");
	check_name(back, 0, 0xf1f, "before");
	check_name(back, 0, 0xf20, NULL);
	check_name(back, 0, 0x103f, "main");
	check_name(back, 0, 0x1040, "ns::f(int)");
	check_name(back, 0, 0x1050, NULL);
	check_name(back, 1, 0xfff, NULL);
	check_name(back, 1, 0x1000, "relay");
	check_name(back, 1, 0x1030, NULL);
	check_name(back, 1, 0x1041, "mycrate::main");
	check_name(back, 2, 0x1000, NULL);
	check_name(back, 1, UINT64_MAX, NULL);
	/* A return address right behind a function belongs to a call at its end; module 0 is none. */
	assert_string_equal(kx_trace_caller(&names, 1, 0x1040), "main");
	assert_string_equal(kx_trace_caller(&names, 2, 0x1030), "relay");
	assert_null(kx_trace_caller(&names, 0, 0x1040));
	assert_null(kx_trace_caller(&names, 2, 0x1000));
	kx_map_free(back);
}

/* Replaces a section by the bytes of a printf format. */
static void put_section(const char *name, const char *bytes)
{
	char command[512];

	snprintf(command, sizeof(command), "printf '%s' >%s/bytes && objcopy --update-section %s=%s/bytes %s", bytes, folder,
		 name, folder, path);
	assert_int_equal(system(command), 0);
}

static void test_damaged(void **state)
{
	static const struct {
		const char *section, *bytes, *why;
	} cases[] = {
		{ KX_MAP_LINES_SECTION, "\\1\\0\\0\\0\\1\\0\\0\\0", "lines is damaged" },
		{ KX_MAP_FILES_SECTION, "\\0abc", "files is missing or damaged" },
		{ KX_MAP_FILES_SECTION, "\\0a\\0", "beyond its files" },
		{ KX_MAP_CALLERS_SECTION, "\\1", "callers is damaged" },
		{ KX_MAP_CALLERS_SECTION, "\\0\\0\\0\\0\\0\\0\\0\\0\\1\\0\\0\\0\\0\\0\\0\\0\\2\\0\\0\\0\\1\\0\\0\\0",
		  "a module that is not there" },
		{ KX_MAP_CALLERS_SECTION, "\\0\\0\\0\\0\\0\\0\\0\\0\\1\\0\\0\\0\\0\\0\\0\\0\\1\\0\\0\\0\\377\\1\\0\\0",
		  "a name beyond its names" },
	};
	struct kx_map map = made(), back;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kx_err err = { 0 };

		write_and_read(&map, NULL);
		put_section(cases[i].section, cases[i].bytes);
		assert_int_equal(kx_map_read(path, &back, &err), -EBADMSG);
		if (!strstr(err.text, cases[i].why))
			fail_msg("'%s' is not in '%s'", cases[i].why, err.text);
	}
}

static void test_caller_set(void **state)
{
	struct kx_caller_set set = { 0 };

	(void)state;
	for (int turn = 0; turn < 3; turn++)
		for (uint64_t i = 0; i < 5000; i++)
			kx_caller_set_add(&set, (int32_t)(i % 7), 0x7f0000000000 + i * 16);
	assert_int_equal(set.count, 5000);
	kx_caller_set_add(&set, 8, 0x7f0000000000);
	kx_caller_set_add(&set, 8, 0);
	assert_int_equal(set.count, 5001);
	for (uint64_t i = 0; i < 2 * KX_MAX_CALLERS; i++)
		kx_caller_set_add(&set, 1, 0x1000 + i);
	assert_int_equal(set.count, KX_MAX_CALLERS);
	kx_caller_set_free(&set);
	assert_int_equal(set.count, 0);
}

static int make_path(void **state)
{
	if (make_folder(state))
		return -1;
	snprintf(path, sizeof(path), "%s/map", folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_names_at_addresses),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_caller_set),
	};

	return cmocka_run_group_tests(tests, make_path, remove_folder);
}
