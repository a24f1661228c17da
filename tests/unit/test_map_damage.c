// SPDX-License-Identifier: BSD-2-Clause
/* Maps that are damaged, odd, or cannot be written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/fdr_writer.h"
#include "trace/map_file.h"
#include "llvm_xray.h"
#include "map_rig.h"

static void expect_no_map(const char *path, int code, const char *why)
{
	struct kx_err err = { 0 };
	struct kx_map map;

	assert_int_equal(kx_map_read(path, &map, &err), code);
	if (!strstr(err.text, why) || !strstr(err.text, path))
		fail_msg("not \"%s\": %s", why, err.text);
	assert_int_equal(map.nfunctions, 0);
	assert_null(map.storage);
}

static void test_not_a_map(void **state)
{
	char path[96];

	(void)state;
	snprintf(path, sizeof(path), "%s/none", folder);
	expect_no_map(path, -ENOENT, "No such file");
	expect_no_map("/bin/true", -EBADMSG, "no section xray_instr_map");
	expect_no_map("/etc/passwd", -EBADMSG, "not an ELF");
	expect_no_map("/dev/null", -EBADMSG, "is not a map");
	expect_no_map(folder, -EBADMSG, "is not a map");
	free(run_okf("printf '.section xray_instr_map,\"a\"\\n.zero 32\\n' | gcc -c -x assembler - "
		     "-o %s", path));
	expect_no_map(path, -EBADMSG, "object file");
	free(run_okf("printf '.section xray_instr_map,\"a\"\\n.zero 33\\n.globl _start\\n_start:\\n'"
		     " | gcc -nostdlib -static -x assembler - -o %s", path));
	expect_no_map(path, -EBADMSG, "damaged");
}

/* @bytes are of printf's FORMAT, with octal escapes. */
static void put_section(const char *section, const char *bytes)
{
	free(run_okf("printf '%s' > %s/bytes && objcopy --update-section %s=%s/bytes %s", bytes,
		     folder, section, folder, map_path));
}

static void put_session(const char *json)
{
	put_section(KX_MAP_SESSION_SECTION, json);
}

static void test_damaged_session(void **state)
{
	static const char *const bad[] = {
		"{\"kxray\":1,\"modules\":[{}]}",
		"{\"kxray\":1,\"modules\":[{\"name\":\"a\",\"path\":\"b\",\"build_id\":\"\","
		"\"load_bias\":0,\"map_base\":\"0x0\"}]}",
		"{\"kxray\":1,\"modules\":[{\"name\":\"a\",\"path\":\"b\",\"build_id\":\"\","
		"\"load_bias\":\"0x0\",\"map_base\":\"1\"}]}",
	};
	struct made m;

	(void)state;
	make_map(&m);
	write_map(&m.map);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put_session(bad[i]);
		expect_no_map(map_path, -EBADMSG, "list of modules is damaged");
	}
	/* four modules are used */
	put_session("{\"kxray\":1,\"modules\":[{\"name\":\"a\",\"path\":\"b\",\"build_id\":\"\","
		    "\"load_bias\":\"0x0\",\"map_base\":\"0x0\"}]}");
	expect_no_map(map_path, -EBADMSG, "a module that is not there");
	put_session("{\"kxray\":");
	expect_no_map(map_path, -EBADMSG, "not JSON");
	put_session("{\"kxray\":2}");
	expect_no_map(map_path, -EBADMSG, "newer kxray");
}

static void test_damaged_functions(void **state)
{
	/* of a map of one module and the names "" and "f"; address 0x1000, 1 byte */
#define ROW(module, name) "\\0\\020\\0\\0\\0\\0\\0\\0" "\\1\\0\\0\\0\\0\\0\\0\\0" module name
#define NO_MODULE "a module that is not there"
#define NO_NAME "a name beyond its names"
	static const struct {
		const char *row, *names, *why;
	} cases[] = {
		{ ROW("\\0\\0\\0\\0", "\\1\\0\\0\\0"), "\\0f\\0", NULL },
		{ ROW("\\1\\0\\0\\0", "\\1\\0\\0\\0"), "\\0f\\0", NO_MODULE },
		{ ROW("\\377\\377\\377\\377", "\\1\\0\\0\\0"), "\\0f\\0", NO_MODULE },
		{ ROW("\\0\\0\\0\\0", "\\3\\0\\0\\0"), "\\0f\\0", NO_NAME },
		{ ROW("\\0\\0\\0\\0", "\\377\\377\\377\\377"), "\\0f\\0", NO_NAME },
		{ ROW("\\0\\0\\0\\0", "\\1\\0\\0"), "\\0f\\0",
		  "functions is missing or damaged" },
		{ ROW("\\0\\0\\0\\0", "\\1\\0\\0\\0"), "\\0f", "names is missing or damaged" },
		{ ROW("\\0\\0\\0\\0", "\\0\\0\\0\\0"), "", "names is missing or damaged" },
	};
	static const char *const needed[] = { KX_MAP_FUNCTIONS_SECTION, KX_MAP_NAMES_SECTION };
	struct kx_map_module module = { "a", "/a", "", 0, 0, NULL };
	struct kx_map_function function = { "f", 0x1000, 0, 1 };
	struct kx_map map = { .modules = &module, .nmodules = 1, .functions = &function,
			      .nfunctions = 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kx_map back;

		write_map(&map);
		put_section(KX_MAP_FUNCTIONS_SECTION, cases[i].row);
		put_section(KX_MAP_NAMES_SECTION, cases[i].names);
		if (cases[i].why) {
			expect_no_map(map_path, -EBADMSG, cases[i].why);
			continue;
		}
		read_map(map_path, &back);
		assert_int_equal(back.nfunctions, 1);
		assert_int_equal(back.functions[0].address, 0x1000);
		assert_int_equal(back.functions[0].size, 1);
		assert_string_equal(back.functions[0].symbol, "f");
		kx_map_free(&back);
	}
	for (size_t i = 0; i < 2; i++) {
		write_map(&map);
		free(run_okf("objcopy --remove-section %s %s", needed[i], map_path));
		expect_no_map(map_path, -EBADMSG, needed[i]);
	}
}

/* Truncated and changed files are read or refused, without a crash. */
static void test_random_damage(void **state)
{
	char path[96];
	uint8_t *data;
	uint32_t seed = 5;
	struct stat st;
	struct made m;
	int fd;

	(void)state;
	make_map(&m);
	write_map(&m.map);
	snprintf(path, sizeof(path), "%s/damaged", folder);
	fd = open(map_path, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	data = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
	close(fd);
	for (int i = 0; i < 3000; i++) {
		size_t size = (size_t)st.st_size;
		struct kx_map map;
		uint8_t old;
		size_t at;

		seed = seed * 1664525u + 1013904223u;
		if (i % 3 == 0)
			size = (seed >> 4) % size;
		/* mostly in the ELF header and the section headers */
		at = i % 2 ? (seed >> 8) % 64
			   : (size_t)st.st_size - 1 - (seed >> 8) % (i % 4 ? 448 : size + 1) %
					   (size_t)st.st_size;
		old = data[at];
		data[at] = (uint8_t)(seed >> 16);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		assert_int_equal(write(fd, data, size), size);
		close(fd);
		data[at] = old;
		if ((i % 4 < 2 ? kx_map_read : kx_map_read_names)(path, &map, NULL) == 0)
			for (uint32_t id = 0; id <= map.nfunctions; id++)
				assert_non_null(kx_map_name(&map, id));
		kx_map_free(&map);
	}
	free(data);
}

static void expect_entries(unsigned n)
{
	char *out = run_okf("ls -A %s/w | wc -l", folder);

	assert_int_equal(atoi(out), n);
	free(out);
}

static void test_write_errors_leave_nothing(void **state)
{
	struct rlimit old, small;
	struct kx_err err = { 0 };
	char path[96], path_nowhere[112];
	struct made m;
	struct kx_map back;

	(void)state;
	make_map(&m);
	snprintf(path, sizeof(path), "%s/w/map", folder);
	snprintf(path_nowhere, sizeof(path_nowhere), "%s/nowhere/map", folder);
	assert_int_equal(kx_map_write(path_nowhere, &m.map, &err), -ENOENT);
	assert_non_null(strstr(err.text, path_nowhere));
	assert_int_equal(kx_map_write("/dev/null", &m.map, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a regular file"));
	free(run_okf("mkdir %s/w", folder));
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 1000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(kx_map_write(path, &m.map, &err), -EFBIG);
	expect_entries(0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(kx_map_write(path, &m.map, &err), 0);
	expect_entries(1);
	/* the old map stays if replacing it fails */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(kx_map_write(path, &m.map, &err), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	expect_entries(1);
	read_map(path, &back);
	assert_int_equal(back.nfunctions, N);
	kx_map_free(&back);
	m.functions[3].module = NMODULES;
	assert_int_equal(kx_map_write(path, &m.map, &err), -EINVAL);
	expect_entries(1);
}

/* Modules with no functions, absurdly far apart functions, text that is not UTF-8. */
static void test_odd_maps(void **state)
{
	struct kx_map_module modules[] = {
		{ "empty", NULL, NULL, 0, 0, NULL },
		{ "wide", "/x/\xff\xfe\xfd\xfc", "", 0, 0, NULL },
		{ NULL, NULL, NULL, UINT64_MAX, 0, NULL },
	};
	struct kx_map_function functions[] = {
		{ "bottom", 0, 1, 1 },
		{ "top", UINT64_MAX, 1, UINT32_MAX },
		{ "middle", 1ULL << 63, 1, 1 },
		{ "last", 0xfffffffffffffff0, 2, 16 },
		{ NULL, 0xfffffffffffffff8, 2, 1 },
		{ "", 0xfffffffffffffff8, 2, 1 },
	};
	struct kx_map map = { .modules = modules, .nmodules = 3, .functions = functions,
			      .nfunctions = 6 };
	struct kx_map back;

	(void)state;
	write_map(&map);
	write_trace(6);
	llvm_xray_accepts(trace_path, map_path, 1);
	for (size_t v = 0; v < N_LLVM_XRAYS; v++) {
		char *out;

		if (access(llvm_xrays[v], X_OK) != 0)
			continue;
		out = run_okf("%s account -f csv -m %s %s", llvm_xrays[v], map_path, trace_path);
		assert_non_null(strstr(out, "\"wide:0:0\",\"bottom\""));
		assert_non_null(strstr(out, "\"wide:0:0\",\"top\""));
		assert_non_null(strstr(out, "\"wide:0:0\",\"middle\""));
		assert_non_null(strstr(out, "\"last\""));
		free(out);
	}
	read_map(map_path, &back);
	assert_int_equal(back.functions[1].address, UINT64_MAX);
	assert_int_equal(back.functions[3].address, 0xfffffffffffffff0);
	assert_int_equal(back.modules[2].load_bias, UINT64_MAX);
	assert_string_equal(kx_map_name(&back, 5), "#5");
	kx_map_free(&back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_a_map),
		cmocka_unit_test(test_damaged_session),
		cmocka_unit_test(test_damaged_functions),
		cmocka_unit_test(test_random_damage),
		cmocka_unit_test(test_write_errors_leave_nothing),
		cmocka_unit_test(test_odd_maps),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
