// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/demangle.h"
#include "base/pattern.h"
#include "select/suggest.h"

static void parses(const char *text, enum kx_pattern_space space, const char *module,
		   const char *glob)
{
	struct kx_pattern p;
	struct kx_err err = { 0 };

	if (kx_pattern_parse(text, &p, &err))
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(p.space, space);
	assert_string_equal(p.text, text);
	assert_string_equal(p.glob, glob);
	if (module)
		assert_string_equal(p.module, module);
	else
		assert_null(p.module);
	kx_pattern_free(&p);
}

static void test_parse(void **state)
{
	static const char *const wrong[] = { "", ":f", "libc.so:" };
	struct kx_pattern p;
	size_t i;

	(void)state;
	parses("malloc", KX_PATTERN_USER, NULL, "malloc");
	parses("libc.so*:malloc", KX_PATTERN_USER, "libc.so*", "malloc");
	parses("ns::f", KX_PATTERN_USER, NULL, "ns::f");
	parses("libx.so:ns::f", KX_PATTERN_USER, "libx.so", "ns::f");
	parses("/opt/*/libx.so:ns::*", KX_PATTERN_USER, "/opt/*/libx.so", "ns::*");
	parses("kernel:tcp_*", KX_PATTERN_KERNEL, "kernel", "tcp_*");
	parses("syscall:*", KX_PATTERN_SYSCALL, "syscall", "*");
	parses("kernel", KX_PATTERN_USER, NULL, "kernel");
	parses("usdt:*", KX_PATTERN_USDT, "usdt", "*");
	parses("usdt:redis:call", KX_PATTERN_USDT, "usdt", "redis:call");
	parses("usdt:redis:begin ~ end", KX_PATTERN_USDT, "usdt", "redis:begin ~ end");
	parses("kernel::boot", KX_PATTERN_USER, NULL, "kernel::boot");
	parses("f[[:digit:]]", KX_PATTERN_USER, NULL, "f[[:digit:]]");
	parses("ns::f[abi:cxx11]", KX_PATTERN_USER, NULL, "ns::f[abi:cxx11]");
	parses("lib[xy].so:f[abi:cxx11]", KX_PATTERN_USER, "lib[xy].so", "f[abi:cxx11]");
	parses("std::vector<int, *>::push_back*", KX_PATTERN_USER, NULL,
	       "std::vector<int, *>::push_back*");
	for (i = 0; i < 3; i++) {
		struct kx_err err = { 0 };

		assert_int_equal(kx_pattern_parse(wrong[i], &p, &err), -EINVAL);
		assert_true(strlen(err.text) > 20);
	}
}

static const char *own_path(void)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	assert_true(n > 0);
	path[n] = 0;
	return path;
}

static bool module_matches(const char *pattern, const char *name, const char *path, bool is_main)
{
	const struct kx_pattern_file m = { name, path, is_main, "worker/my-server" };
	struct kx_pattern p;
	bool matches;

	assert_int_equal(kx_pattern_parse(pattern, &p, NULL), 0);
	matches = kx_pattern_matches_file(&p, &m);
	kx_pattern_free(&p);
	return matches;
}

static void test_module(void **state)
{
	const char *path = "/usr/lib/x86_64-linux-gnu/libc.so.6";

	(void)state;
	assert_true(module_matches("my-s*:f", "prog", "/usr/bin/prog", true));
	assert_true(module_matches("worker:f", "prog", "/usr/bin/prog", true));
	assert_false(module_matches("work:f", "prog", "/usr/bin/prog", true));
	assert_false(module_matches("worker/my-server:f", "prog", "/usr/bin/prog", true));
	assert_true(module_matches("f", "server", "/srv/server", true));
	assert_false(module_matches("f", "libc.so.6", path, false));
	assert_true(module_matches("libc.so*:f", "libc.so.6", path, false));
	assert_true(module_matches("libc.so.6:f", "libc.so.6", path, false));
	assert_false(module_matches("libc.so:f", "libc.so.6", path, false));
	assert_true(module_matches("*:f", "libc.so.6", path, false));
	assert_true(module_matches("*/x86_64-linux-gnu/*:f", "libc.so.6", path, false));
	assert_false(module_matches("/lib/*:f", "libc.so.6", path, false));
	/* a file given by a link or a relative path; the process has its real path */
	assert_true(module_matches("/proc/self/exe:f", "test_pattern", own_path(), false));
	assert_false(module_matches("/proc/self/exe:f", "libc.so.6", path, false));
	assert_int_equal(chdir("/usr"), 0);
	assert_true(module_matches("bin/env:f", "env", "/usr/bin/env", false));
	assert_false(module_matches("bin/env:f", "env", "/bin/env", false));
	assert_true(module_matches("server:f", "server", "/srv/server", true));
	assert_false(module_matches("kernel:f", "kernel", "/srv/kernel", true));
}

static bool matches(const char *pattern, const char *symbol, const char *alias)
{
	const char *aliases[] = { alias, NULL };
	char *pretty = kx_demangle(symbol);
	const struct kx_pattern_names s = { symbol, pretty ? pretty : symbol,
					    alias ? aliases : NULL };
	struct kx_pattern p;
	bool yes;

	assert_int_equal(kx_pattern_parse(pattern, &p, NULL), 0);
	yes = kx_pattern_matches_names(&p, &s);
	kx_pattern_free(&p);
	free(pretty);
	return yes;
}

static void test_names(void **state)
{
	(void)state;
	assert_true(matches("malloc", "malloc", NULL));
	assert_true(matches("m*c", "malloc", NULL));
	assert_true(matches("mallo?", "malloc", NULL));
	assert_true(matches("[mc]alloc", "calloc", NULL));
	assert_false(matches("alloc", "malloc", NULL));
	assert_false(matches("malloc", "malloc_trim", NULL));
	assert_false(matches("MALLOC", "malloc", NULL));
	assert_true(matches("*", "anything", NULL));
	assert_true(matches("__libc_malloc", "malloc", "__libc_malloc"));
	assert_true(matches("x*", "malloc", "xmalloc"));
	assert_false(matches("calloc", "malloc", "__libc_malloc"));
}

static void test_suffixes(void **state)
{
	(void)state;
	assert_true(matches("f", "f.isra.0", NULL));
	assert_true(matches("f", "f.constprop.12", NULL));
	assert_true(matches("f", "f.part.0.isra.1", NULL));
	assert_true(matches("f.part.0", "f.part.0.isra.1", NULL));
	assert_true(matches("f.isra.0", "f.isra.0", NULL));
	assert_true(matches("f", "f.lto_priv.0", NULL));
	assert_true(matches("f", "f.llvm.123456789", NULL));
	assert_true(matches("f", "f.localalias", NULL));
	assert_true(matches("memcpy", "memcpy@@GLIBC_2.14", NULL));
	assert_true(matches("memcpy", "memcpy@GLIBC_2.2.5", NULL));
	/* a suffix that is not a compiler's belongs to the name */
	assert_false(matches("f", "f.old", NULL));
	assert_false(matches("f", "f.1", NULL));
	assert_false(matches("f", "g.isra.0", NULL));
	assert_true(matches("f", "g", "f.isra.0"));
}

static void test_cxx(void **state)
{
	(void)state;
	/* ns::f(int) */
	assert_true(matches("ns::f", "_ZN2ns1fEi", NULL));
	assert_true(matches("ns::f(int)", "_ZN2ns1fEi", NULL));
	assert_true(matches("ns::*", "_ZN2ns1fEi", NULL));
	assert_true(matches("_ZN2ns1fEi", "_ZN2ns1fEi", NULL));
	assert_true(matches("_ZN2ns*", "_ZN2ns1fEi", NULL));
	assert_false(matches("f", "_ZN2ns1fEi", NULL));
	assert_false(matches("ns::f(long)", "_ZN2ns1fEi", NULL));
	/* ns::C::g(char const*) const, as a clone */
	assert_true(matches("ns::C::g", "_ZNK2ns1C1gEPKc.isra.0", NULL));
	assert_true(matches("ns::C::g(char const?) const", "_ZNK2ns1C1gEPKc.isra.0", NULL));
	assert_true(matches("ns::C::g(char const*) const", "_ZNK2ns1C1gEPKc.constprop.0.isra.0", NULL));
	/* a template's return type is optional */
	assert_true(matches("ns::f<int>", "_ZN2ns1fIiEET_S1_", NULL));
	assert_true(matches("int ns::f<int>(int)", "_ZN2ns1fIiEET_S1_", NULL));
	/* std::vector<int, std::allocator<int> >::push_back(int const&) */
	assert_true(matches("std::vector<int, *>::push_back*", "_ZNSt6vectorIiSaIiEE9push_backERKi",
			    NULL));
	/* literal brackets */
	assert_true(matches("ns::operator[]", "_ZN2nsixEi", NULL));
	assert_true(matches("ns::operator[](int)", "_ZN2nsixEi", NULL));
	assert_true(matches("*::operator[](*", "_ZN2nsixEi", NULL));
	assert_true(matches("operator new[]*", "_Znam", NULL));
	assert_true(matches("f[abi:cxx11]", "_Z1fB5cxx11v", NULL));
	assert_true(matches("f[abi:*]", "_Z1fB5cxx11v", NULL));
	/* an alias under a mangled name */
	assert_true(matches("ns::f", "other", "_ZN2ns1fEi"));
}

static void test_rust(void **state)
{
	(void)state;
	assert_true(matches("core::ptr::drop_in_place",
			    "_ZN4core3ptr13drop_in_place17h0123456789abcdefE", NULL));
	assert_true(matches("mycrate::*", "_RNvC7mycrate4main", NULL));
	assert_true(matches("mycrate::foo::bar", "_RNvNtC7mycrate3foo3bar", NULL));
}

static void suggests(const char *pattern, const char *expected)
{
	char server_name[] = "server", libc_name[] = "libc.so.6";
	struct kx_symbol in_main[] = { { .name = "handle_request", .pretty = "handle_request" },
				       { .name = "handle_reply", .pretty = "handle_reply" },
				       { .name = "_ZN2ns4pushEi", .pretty = "ns::push(int)" } };
	const char *aliases[] = { "__libc_malloc", NULL };
	struct kx_symbol in_libc[] = { { .name = "malloc", .pretty = "malloc", .aliases = aliases },
				       { .name = "realloc", .pretty = "realloc" },
				       { .name = "memcpy", .pretty = "memcpy" } };
	struct kx_module m[] = { { .name = server_name, .is_main = true }, { .name = libc_name } };
	struct kx_symbols s[] = { { .items = in_main, .count = 3 }, { .items = in_libc, .count = 3 } };
	struct kx_suggest_source sources[] = { { &m[0], &s[0], true }, { &m[1], &s[1], false } };
	struct kx_pattern p;
	char text[500];

	assert_int_equal(kx_pattern_parse(pattern, &p, NULL), 0);
	kx_suggest(&p, sources, 2, text, sizeof(text));
	assert_string_equal(text, expected);
	kx_pattern_free(&p);
}

static void test_suggestions(void **state)
{
	(void)state;
	suggests("mallok", "malloc in libc.so.6 (-f 'libc.so*:malloc')");
	suggests("Malloc", "malloc in libc.so.6 (-f 'libc.so*:malloc'), "
			   "realloc in libc.so.6 (-f 'libc.so*:realloc')");
	suggests("libc_malloc", "__libc_malloc in libc.so.6 (-f 'libc.so*:__libc_malloc')");
	/* the right name in another module */
	suggests("memcpy", "memcpy in libc.so.6 (-f 'libc.so*:memcpy')");
	suggests("handle_requst", "handle_request");
	suggests("handle_reqest*", "handle_request");
	suggests("reply", "handle_reply");
	suggests("handle", "handle_reply, handle_request");
	suggests("push", "ns::push");
	suggests("nothing_like_it", "");
	suggests("**", "");
	suggests("zz", "");
}

static bool marker_matches(const char *pattern, const char *name)
{
	const struct kx_pattern_names names = { .symbol = name, .pretty = name };
	struct kx_pattern p;
	bool matches;

	assert_int_equal(kx_pattern_parse(pattern, &p, NULL), 0);
	matches = kx_pattern_matches_names(&p, &names);
	kx_pattern_free(&p);
	return matches;
}

static void test_markers(void **state)
{
	(void)state;
	assert_true(marker_matches("usdt:*", "usdt:redis:call"));
	assert_true(marker_matches("usdt:redis:*", "usdt:redis:call"));
	assert_true(marker_matches("usdt:*:call", "usdt:redis:call"));
	assert_true(marker_matches("usdt:redis:call", "usdt:redis:call"));
	assert_false(marker_matches("usdt:redis", "usdt:redis:call"));
	assert_false(marker_matches("usdt:*", "call"));
	assert_false(marker_matches("usdt:call", "call"));
	assert_true(kx_is_marker_name("usdt:redis:call"));
	assert_false(kx_is_marker_name("usdt:redis:begin ~ end"));
	assert_false(kx_is_marker_name("usdt::call"));
	assert_false(marker_matches("usdt:*", "usdt::call"));
	assert_false(kx_is_marker_name("call"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse), cmocka_unit_test(test_module),
		cmocka_unit_test(test_names), cmocka_unit_test(test_suffixes),
		cmocka_unit_test(test_cxx),   cmocka_unit_test(test_rust),
		cmocka_unit_test(test_suggestions), cmocka_unit_test(test_markers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
