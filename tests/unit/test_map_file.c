// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/fdr_writer.h"
#include "trace/map_file.h"
#include "llvm_xray.h"
#include "map_rig.h"

static void test_round_trip(void **state)
{
	struct made m;
	struct kx_map back;

	(void)state;
	make_map(&m);
	m.map.session = json_pack("{s:s, s:[i,i]}", "command", "kxray record -p 1", "pids", 1, 2);
	write_map(&m.map);
	read_map(map_path, &back);
	assert_int_equal(back.nmodules, NMODULES);
	assert_int_equal(back.nfunctions, N);
	assert_true(json_equal(back.session, m.map.session));
	for (size_t i = 0; i < NMODULES; i++) {
		assert_string_equal(back.modules[i].name, m.modules[i].name);
		assert_string_equal(back.modules[i].path, m.modules[i].path);
		assert_string_equal(back.modules[i].build_id, m.modules[i].build_id);
		assert_int_equal(back.modules[i].load_bias, m.modules[i].load_bias);
		assert_int_equal(back.modules[i].map_base, m.modules[i].map_base);
	}
	for (size_t i = 0; i < N; i++) {
		assert_string_equal(back.functions[i].symbol, m.functions[i].symbol);
		assert_int_equal(back.functions[i].module, m.functions[i].module);
		assert_int_equal(back.functions[i].address, m.functions[i].address);
		assert_int_equal(back.functions[i].size, m.functions[i].size);
		assert_string_equal(kx_map_name(&back, (uint32_t)i + 1),
				    functions_template[i].pretty);
		assert_string_equal(kx_map_module_name(&back, (uint32_t)i + 1),
				    m.modules[m.functions[i].module].name);
	}
	assert_string_equal(kx_map_name(&back, 0), "#0");
	assert_string_equal(kx_map_name(&back, N + 1), "#15");
	assert_string_equal(kx_map_name(&back, 268435455), "#268435455");
	assert_ptr_equal(kx_map_name(&back, 0), kx_map_name(&back, 0));
	assert_ptr_equal(kx_map_name(&back, 2), kx_map_name(&back, 2));
	assert_string_equal(kx_map_module_name(&back, 0), "");
	assert_string_equal(kx_map_module_name(&back, N + 1), "");
	kx_map_free(&back);
	kx_map_free(&back);
	/* a map written by hand has names, too */
	assert_string_equal(kx_map_name(&m.map, 2), "foo::bar(int)");
	kx_map_free(&m.map);
	assert_int_equal(m.map.nfunctions, N);
	json_decref(m.map.session);
}

/* Less memory, the same names. */
static void names_only(void **state)
{
	struct kx_err err = { 0 };
	struct kx_map back;
	struct made m;

	(void)state;
	make_map(&m);
	m.map.session = json_pack("{s:s}", "command", "kxray record -p 1");
	write_map(&m.map);
	assert_int_equal(kx_map_read_names(map_path, &back, &err), 0);
	assert_null(back.functions);
	assert_int_equal(back.nfunctions, N);
	assert_true(json_equal(back.session, m.map.session));
	for (uint32_t i = 0; i < N; i++) {
		kx_map_prefetch(&back, i + 1, false);
		kx_map_prefetch(&back, i + 1, true);
		assert_string_equal(kx_map_symbol(&back, i + 1), m.functions[i].symbol);
		assert_int_equal(kx_map_module(&back, i + 1), m.functions[i].module);
		assert_string_equal(kx_map_name(&back, i + 1), functions_template[i].pretty);
		assert_string_equal(kx_map_module_name(&back, i + 1), m.modules[m.functions[i].module].name);
	}
	for (uint32_t id = 0; id <= N + 1; id += N + 1) {
		assert_null(kx_map_symbol(&back, id));
		assert_true(kx_map_module(&back, id) >= back.nmodules);
		assert_string_equal(kx_map_module_name(&back, id), "");
	}
	assert_string_equal(kx_map_name(&back, N + 1), "#15");
	kx_map_free(&back);
	assert_null(back.labels);
	kx_map_free(&m.map);
	json_decref(m.map.session);
}

/* Addresses as llvm-xray reads them: unique for each id; the low 24 bits are kept if possible. */
static void check_addresses(const char *llvm_xray)
{
	struct made m;
	char *out, *at;
	uint64_t seen[N];

	make_map(&m);
	write_map(&m.map);
	out = run_okf("%s extract %s", llvm_xray, map_path);
	at = out;
	for (size_t i = 0; i < N; i++) {
		unsigned id;
		unsigned long long sled, function;

		at = strstr(at, "- { id:");
		assert_non_null(at);
		assert_int_equal(sscanf(at, "- { id: %u, address: 0x%llx, function: 0x%llx, kind: "
					"function-enter,", &id, &sled, &function), 3);
		at++;
		assert_int_equal(id, i + 1);
		assert_int_equal(sled, function);
		assert_true(function >= 0x1000000);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(seen[k], function);
		seen[i] = function;
		/* ids 7 to 10 are those that repeat an address */
		if (i + 1 <= 6 || i + 1 > 10)
			assert_int_equal(function & 0xffffff, m.functions[i].address & 0xffffff);
		if (i + 1 <= 6)
			assert_in_range(function, m.modules[m.functions[i].module].map_base,
					m.modules[m.functions[i].module].map_base + 0x80000000);
	}
	assert_null(strstr(at, "- { id:"));
	free(out);
	/* distances within a module are real, those between modules are not */
	assert_int_equal(seen[1] - seen[0], 0x1200 - 0x1139);
	assert_int_equal(seen[5] - seen[4], 0xffffffffc0000010 - 0xffffffff81234560);
	assert_int_equal(m.modules[EXE].map_base % 0x1000000, 0);
}

static void test_addresses(void **state)
{
	(void)state;
	for (size_t v = 0; v < N_LLVM_XRAYS; v++)
		if (access(llvm_xrays[v], X_OK) == 0)
			check_addresses(llvm_xrays[v]);
}

static void test_llvm_xray_prints_names_and_modules(void **state)
{
	struct made m;

	(void)state;
	make_map(&m);
	write_map(&m.map);
	write_trace(N);
	for (size_t v = 0; v < N_LLVM_XRAYS; v++) {
		char *out;

		if (access(llvm_xrays[v], X_OK) != 0)
			continue;
		out = run_okf("%s account -f csv -sort=funcid -sortorder=asc -m %s %s",
			      llvm_xrays[v], map_path, trace_path);
		for (size_t i = 0; i < N; i++) {
			const struct expected *e = &functions_template[i];
			const char *name = e->llvm_pretty ? e->llvm_pretty : e->pretty;
			char start[32], finish[256], *line, *eol;

			snprintf(start, sizeof(start), "\n%zu,%zu,", i + 1, i + 1);
			snprintf(finish, sizeof(finish), "\"%s:0:0\",\"%s\"",
				 modules_template[e->function.module].name, name);
			line = strstr(out, start);
			if (!line)
				fail_msg("no line %s in\n%s", start, out);
			eol = strchr(line + 1, '\n');
			assert_non_null(eol);
			*eol = 0;
			if (!strstr(line, finish))
				fail_msg("%s: not %s but %s", llvm_xrays[v], finish, line);
			*eol = '\n';
		}
		free(out);
	}
	llvm_xray_accepts(trace_path, map_path, 0);
}

/* llvm-xray writes names into JSON without quoting, so kxray's names must be safe. */
static void test_trace_event_stays_json(void **state)
{
	struct made m;

	(void)state;
	make_map(&m);
	write_map(&m.map);
	write_trace(N);
	for (size_t v = 0; v < N_LLVM_XRAYS; v++) {
		json_error_t error;
		json_t *json;
		char *out;

		if (access(llvm_xrays[v], X_OK) != 0)
			continue;
		out = run_okf("%s convert -symbolize -f trace_event -m %s %s", llvm_xrays[v],
			      map_path, trace_path);
		json = json_loads(out, 0, &error);
		if (!json)
			fail_msg("%s: %s", llvm_xrays[v], error.text);
		assert_int_equal(json_array_size(json_object_get(json, "traceEvents")),
				 2 * N * (N + 1) / 2);
		json_decref(json);
		free(out);
	}
}

static void test_empty_map(void **state)
{
	struct kx_map map = { 0 }, back;

	(void)state;
	write_map(&map);
	read_map(map_path, &back);
	assert_int_equal(back.nfunctions, 0);
	assert_int_equal(back.nmodules, 0);
	assert_null(back.session);
	kx_map_free(&back);
}

static void test_many_functions(void **state)
{
	const size_t n = 200000;
	struct kx_map_function *functions = calloc(n, sizeof(*functions));
	struct kx_map_module module = { "libbig.so", "/lib/libbig.so", "", 0, 0, NULL };
	struct kx_map map = { .modules = &module, .nmodules = 1, .functions = functions,
			      .nfunctions = n };
	struct kx_map back;
	char *names = malloc(n * 40), *out;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		functions[i].symbol = names + 40 * i;
		/* in reverse: ids are not in the order of addresses */
		functions[i].address = 0x1000 + 64 * (n - i);
		functions[i].size = 64;
		snprintf(names + 40 * i, 40, "_ZN5space14function%06zuEv", i);
	}
	write_map(&map);
	read_map(map_path, &back);
	assert_int_equal(back.nfunctions, n);
	assert_string_equal(kx_map_name(&back, (uint32_t)n), "space::function199999()");
	kx_map_free(&back);
	out = run_okf("%s extract -symbolize %s | grep 'id: 200000,'", llvm_xrays[0], map_path);
	assert_non_null(strstr(out, "space::function199999()"));
	free(out);
	free(functions);
	free(names);
}

/* The layout documented in map_file.h, byte by byte, so that other programs can read it. */
static void test_functions_are_24_bytes(void **state)
{
	static const uint8_t second[24] = {
		0x00, 0x12, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, EXE, 0, 0, 0,
		6, 0, 0, 0, /* "", "main" before it */
	};
	static const char start[] = "\0main\0_ZN3foo3barEi\0malloc@@GLIBC_2.2.5\0free\0";
	uint8_t rows[24 * N + 1], names[512];
	char path[96];
	struct made m;
	int fd;

	(void)state;
	make_map(&m);
	write_map(&m.map);
	snprintf(path, sizeof(path), "%s/rows", folder);
	free(run_okf("objcopy --dump-section %s=%s %s /dev/null", KX_MAP_FUNCTIONS_SECTION, path,
		     map_path));
	fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, rows, sizeof(rows)), 24 * N);
	close(fd);
	assert_memory_equal(rows + 24, second, 24);
	assert_int_equal(rows[2 * 24 + 16], LIBC);
	free(run_okf("objcopy --dump-section %s=%s %s /dev/null", KX_MAP_NAMES_SECTION, path,
		     map_path));
	fd = open(path, O_RDONLY);
	assert_true(read(fd, names, sizeof(names)) > 40);
	close(fd);
	assert_memory_equal(names, start, sizeof(start) - 1);
}

/* More text than the cache holds: evicted names are computed again. */
static void test_names_beyond_memory(void **state)
{
	enum { COUNT = 12000, LEN = 895, LARGE = 7 };
	struct kx_map_function *functions = calloc(COUNT, sizeof(*functions));
	struct kx_map_module module = { "a", "/a", "", 0, 0, NULL };
	struct kx_map map = { .modules = &module, .nmodules = 1, .functions = functions,
			      .nfunctions = COUNT };
	char *symbols = malloc((size_t)COUNT * 1000), *pad = malloc(LEN + 1), name[32];
	char large[200] = "_Z1fSt4pairIiiE", *at = large + strlen(large);

	(void)state;
	memset(pad, 'x', LEN);
	pad[LEN] = 0;
	for (size_t i = 0; i < COUNT; i++) {
		functions[i].symbol = symbols + 1000 * i;
		sprintf(symbols + 1000 * i, "_Z%df%05zu%sv", LEN + 6, i, pad);
	}
	/* pair<pair<..., ...>, pair<..., ...>>: each one twice as long as the one before */
	for (char c = '0'; c <= 'F'; c = c == '9' ? 'A' : (char)(c + 1))
		at += sprintf(at, "S_IS%c_S%c_E", c, c);
	functions[LARGE].symbol = large;
	for (size_t pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < COUNT; i++) {
			const char *got = kx_map_name(&map, i + 1);

			if (i == LARGE) {
				assert_string_equal(got, large);
				continue;
			}
			snprintf(name, sizeof(name), "f%05ux", i);
			assert_memory_equal(got, name, 7);
			assert_int_equal(strlen(got), LEN + 8);
			assert_string_equal(got + LEN + 6, "()");
		}
	kx_map_free(&map);
	free(functions);
	free(symbols);
	free(pad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(names_only),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_llvm_xray_prints_names_and_modules),
		cmocka_unit_test(test_trace_event_stays_json),
		cmocka_unit_test(test_empty_map),
		cmocka_unit_test(test_many_functions),
		cmocka_unit_test(test_functions_are_24_bytes),
		cmocka_unit_test(test_names_beyond_memory),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
