// SPDX-License-Identifier: BSD-2-Clause
/* Binaries built with XRay as maps, compared with the output of llvm-xray. */
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

/* Binaries built with XRay, compared with llvm-xray's own output. */
static const char xray_source[] =
	"#include <stdio.h>\n"
	"#define X __attribute__((xray_always_instrument, noinline))\n"
	"namespace deep { X int one(int a) { return a + 1; } }\n"
	"X static int two(int a) { return deep::one(a) * 2; }\n"
	"extern \"C\" X int three(int a) { return two(a) + 3; }\n"
	"X int main(int argc, char **) { return three(argc) == 0; }\n";

static void compare_with_extract_of(const char *llvm_xray, const char *binary)
{
	struct kx_map map;
	char *out, *at;
	size_t found = 0;

	read_map(binary, &map);
	assert_null(map.session);
	assert_int_equal(map.nmodules, 1);
	assert_string_equal(map.modules[0].path, binary);
	out = run_okf("%s extract -symbolize %s", llvm_xray, binary);
	for (at = out; (at = strstr(at, "- { id: ")); at++) {
		unsigned id;
		unsigned long long function;
		char *name;
		size_t len;

		assert_int_equal(sscanf(at, "- { id: %u, address: %*[^,], function: 0x%llx,", &id,
					&function), 2);
		assert_true(id >= 1 && id <= map.nfunctions);
		assert_int_equal(map.functions[id - 1].address, function);
		/* quoted or not, as YAML needs it */
		name = strstr(at, "function-name: ");
		assert_non_null(name);
		name += strlen("function-name: ");
		name += *name == '\'';
		len = strlen(kx_map_name(&map, id));
		assert_memory_equal(name, kx_map_name(&map, id), len);
		assert_non_null(strchr("' ,", name[len]));
		if (id > found)
			found = id;
	}
	assert_int_equal(found, map.nfunctions);
	assert_true(map.nfunctions >= 3);
	free(out);
	kx_map_free(&map);
}

static void compare_with_extract(const char *binary)
{
	for (size_t v = 0; v < N_LLVM_XRAYS; v++)
		if (access(llvm_xrays[v], X_OK) == 0)
			compare_with_extract_of(llvm_xrays[v], binary);
}

static void test_xray_binaries(void **state)
{
	static const char *const compilers[] = { "/usr/bin/clang-14", "/usr/bin/clang-19" };
	static const char *const flags[] = { "-fPIE -pie", "-fno-pie -no-pie", "-fPIE -pie -O2" };
	char source[80], binary[96];
	int tried = 0;
	FILE *f;

	(void)state;
	snprintf(source, sizeof(source), "%s/x.cpp", folder);
	f = fopen(source, "w");
	assert_non_null(f);
	fputs(xray_source, f);
	fclose(f);
	snprintf(binary, sizeof(binary), "%s/x", folder);
	for (size_t c = 0; c < 2; c++) {
		if (access(compilers[c], X_OK) != 0)
			continue;
		for (size_t i = 0; i < 3; i++) {
			struct kx_map map;

			free(run_okf("%s -fxray-instrument -Wl,--build-id=0xabcdef12 %s -x c++ %s "
				     "-o %s", compilers[c], flags[i], source, binary));
			compare_with_extract(binary);
			read_map(binary, &map);
			assert_int_equal(map.nfunctions, 4);
			assert_string_equal(map.modules[0].build_id, "abcdef12");
			assert_string_equal(map.modules[0].name, "x");
			assert_string_equal(kx_map_name(&map, 1), "deep::one(int)");
			assert_true(map.functions[0].size > 8);
			kx_map_free(&map);
			tried++;
		}
	}
	if (!tried)
		skip();
}

/* Version-0 sleds have absolute addresses, which a PIE has only in its relocations. */
static void test_version_0_sleds(void **state)
{
	static const char *const flags[] = { "-pie", "-no-pie" };
	char source[80], binary[96];
	FILE *f;

	(void)state;
	snprintf(source, sizeof(source), "%s/v0.s", folder);
	snprintf(binary, sizeof(binary), "%s/v0", folder);
	f = fopen(source, "w");
	assert_non_null(f);
	fputs(".globl main, second\n.type main,@function\n.type second,@function\n"
	      ".type third,@function\n.text\n"
	      "main: xor %eax,%eax\n ret\nsecond: nop\n ret\nthird: nop\n ret\nlabel: ret\n.Lnameless: ret\n"
	      ".size main,3\n.size second,2\n.size third,2\n.size label,1\n"
	      ".section xray_instr_map,\"aw\",@progbits\n"
	      ".quad second,second\n.byte 0,1,0\n.zero 13\n"
	      ".quad second+1,second\n.byte 1,1,0\n.zero 13\n"
	      ".quad main,main\n.byte 0,1,0\n.zero 13\n"
	      ".quad third,third\n.byte 0,1,0\n.zero 13\n"
	      ".quad label,label\n.byte 0,1,0\n.zero 13\n"
	      ".quad .Lnameless,.Lnameless\n.byte 0,1,0\n.zero 13\n"
	      ".section .note.GNU-stack,\"\",@progbits\n", f);
	fclose(f);
	for (size_t i = 0; i < 2; i++) {
		struct kx_map map;
		char name[32];

		free(run_okf("gcc %s -o %s %s", flags[i], binary, source));
		compare_with_extract(binary);
		read_map(binary, &map);
		assert_int_equal(map.nfunctions, 5);
		assert_string_equal(kx_map_name(&map, 1), "second");
		assert_string_equal(kx_map_name(&map, 2), "main");
		assert_int_equal(map.functions[1].size, 3);
		assert_string_equal(kx_map_name(&map, 3), "third");
		snprintf(name, sizeof(name), "@(%llx)",
			 (unsigned long long)map.functions[0].address + 5);
		assert_string_equal(kx_map_name(&map, 4), "label");
		assert_string_equal(kx_map_name(&map, 5), name);
		kx_map_free(&map);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xray_binaries),
		cmocka_unit_test(test_version_0_sleds),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
