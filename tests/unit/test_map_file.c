// SPDX-License-Identifier: BSD-2-Clause
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
#include "llvm_xray.h"
#include "trace/map_file.h"

static char folder[] = "/tmp/kx_map_XXXXXX";
static char map_path[64], trace_path[64];

enum { EXE, LIBC, KERNEL, SYSCALL, NMODULES };

static const struct kx_map_module modules_template[NMODULES] = {
	[EXE] = { "server", "/usr/bin/server", "0123abcd", 0x555555554000, 0 },
	[LIBC] = { "libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6", "ffee", 0x7ffff7d00000, 0 },
	[KERNEL] = { "kernel", "", "", 0, 0 },
	[SYSCALL] = { "syscall", "", "", 0, 0 },
};

struct expected {
	struct kx_map_function function;
	const char *pretty;      /* the name that kxray prints */
	const char *llvm_pretty; /* the name that llvm-xray prints; NULL: the same */
};

static const struct expected functions_template[] = {
	{ { "main", 0x1139, EXE, 40 }, "main", NULL },
	{ { "_ZN3foo3barEi", 0x1200, EXE, 100 }, "foo::bar(int)", NULL },
	{ { "malloc@@GLIBC_2.2.5", 0x1139, LIBC, 300 }, "malloc", NULL },
	{ { "free", 0x2000, LIBC, 20 }, "free", NULL },
	{ { "do_sys_open", 0xffffffff81234560, KERNEL, 99 }, "do_sys_open", NULL },
	{ { "vfs_read", 0xffffffffc0000010, KERNEL, 0 }, "vfs_read", NULL },
	/* the same address, in adjacent and in distant entries */
	{ { "read", 0, SYSCALL, 0 }, "read", NULL },
	{ { "write", 0, SYSCALL, 0 }, "write", NULL },
	{ { "openat", 0, SYSCALL, 0 }, "openat", NULL },
	{ { "main_again", 0x1139, EXE, 40 }, "main_again", NULL },
	{ { "a\"b\\c;d\n", 0x1300, EXE, 1 }, "a\"b\\c;d\n", "a_b_c_d_" },
	{ { "_Zli3_kby", 0x1310, EXE, 1 }, "operator\"\" _kb(unsigned long long)",
	  "operator__ _kb(unsigned long long)" },
	{ { "_RNvC6_123foo3bar", 0x1320, EXE, 16 }, "123foo::bar", NULL },
	{ { "_ZN4core3fmt5write17h0123456789abcdefE", 0x1330, EXE, 16 }, "core::fmt::write",
	  "core::fmt::write::h0123456789abcdef" },
};
#define N (sizeof(functions_template) / sizeof(functions_template[0]))

struct made {
	struct kx_map map;
	struct kx_map_module modules[NMODULES];
	struct kx_map_function functions[N];
};

static void make_map(struct made *m)
{
	memset(m, 0, sizeof(*m));
	memcpy(m->modules, modules_template, sizeof(m->modules));
	for (size_t i = 0; i < N; i++)
		m->functions[i] = functions_template[i].function;
	m->map.modules = m->modules;
	m->map.nmodules = NMODULES;
	m->map.functions = m->functions;
	m->map.nfunctions = N;
}

static void write_map(struct kx_map *map)
{
	struct kx_err err = { 0 };

	if (kx_map_write(map_path, map, &err) != 0)
		fail_msg("%s", err.text);
}

static void read_map(const char *path, struct kx_map *map)
{
	struct kx_err err = { 0 };

	if (kx_map_read(path, map, &err) != 0)
		fail_msg("%s", err.text);
}

/* A trace in which function id i is called i times. */
static void write_trace(uint32_t nfunctions)
{
	struct kx_fdr_options o = { .tsc_hz = 1000000000, .start_tsc = 1 };
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	uint64_t tsc = 100;
	int fd = open(trace_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(kx_fdr_writer_new(fd, &o, &w, NULL), 0);
	t = kx_fdr_writer_thread(w, 1, 1, "t", "p");
	for (uint32_t f = 1; f <= nfunctions; f++)
		for (uint32_t i = 0; i < f; i++) {
			assert_int_equal(kx_fdr_entry(t, ++tsc, 0, f, NULL, 0), 0);
			assert_int_equal(kx_fdr_exit(t, ++tsc, 0, f, false), 0);
		}
	assert_int_equal(kx_fdr_finish(w, 0, NULL), 0);
	kx_fdr_writer_free(w);
	close(fd);
}

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

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(map_path, sizeof(map_path), "%s/trace.map", folder);
	snprintf(trace_path, sizeof(trace_path), "%s/trace", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	free(run_okf("rm -r %s", folder));
	return 0;
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
		cmocka_unit_test(test_xray_binaries),
		cmocka_unit_test(test_version_0_sleds),
		cmocka_unit_test(test_not_a_map),
		cmocka_unit_test(test_damaged_session),
		cmocka_unit_test(test_functions_are_24_bytes),
		cmocka_unit_test(test_damaged_functions),
		cmocka_unit_test(test_names_beyond_memory),
		cmocka_unit_test(test_random_damage),
		cmocka_unit_test(test_write_errors_leave_nothing),
		cmocka_unit_test(test_odd_maps),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
