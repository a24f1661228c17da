// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/demangle.h"
#include "base/demangle_plain.h"

static void check(const char *symbol, const char *whole, const char *name)
{
	char *got = kx_demangle(symbol), *base = kx_demangle_name(symbol);

	assert_non_null(got);
	assert_non_null(base);
	assert_string_equal(got, whole);
	assert_string_equal(base, name);
	free(got);
	free(base);
}

static void test_cxx(void **state)
{
	(void)state;
	check("_ZN2ns1fEi", "ns::f(int)", "ns::f");
	check("_ZNK2ns1C1gEPKc", "ns::C::g(char const*) const", "ns::C::g");
	check("_Znwm", "operator new(unsigned long)", "operator new");
	check("_ZN2nsixEi", "ns::operator[](int)", "ns::operator[]");
	/* The return type of a template is part of the whole name only. */
	check("_ZN2ns1fIiEET_S1_", "int ns::f<int>(int)", "ns::f<int>");
	check("_ZN12_GLOBAL__N_11gEv", "(anonymous namespace)::g()", "(anonymous namespace)::g");
	check("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const",
	      "main::{lambda(int)#1}::operator()");
}

static void test_suffixes(void **state)
{
	(void)state;
	check("_ZN2ns1fEi.isra.0", "ns::f(int) [clone .isra.0]", "ns::f");
	check("_ZN2ns1fEi.constprop.0.isra.0", "ns::f(int) [clone .constprop.0] [clone .isra.0]",
	      "ns::f");
}

static void test_rust(void **state)
{
	(void)state;
	/* legacy: like Itanium, with a hash that is left out */
	check("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place",
	      "core::ptr::drop_in_place");
	check("_ZN4core3ptr13drop_in_place17h0123456789abcdefE.llvm.77", "core::ptr::drop_in_place",
	      "core::ptr::drop_in_place");
	/* v0 */
	check("_RNvC7mycrate4main", "mycrate::main", "mycrate::main");
	check("_RNvNtC7mycrate3foo3bar", "mycrate::foo::bar", "mycrate::foo::bar");
}

static void test_names_of_compilers(void **state)
{
	(void)state;
	/* clang's ThinLTO and gcc's parts and clones keep the function's name; so does a pattern */
	check("_ZN2ns1fEi.llvm.123456", "ns::f(int) [clone .llvm.123456]", "ns::f");
	check("_ZN2ns1fEi.cold", "ns::f(int) [clone .cold]", "ns::f");
	check("_ZN2ns1fEi.part.0.constprop.1", "ns::f(int) [clone .part.0] [clone .constprop.1]", "ns::f");
	/* Rust v0: generics, closures, trait implementations */
	check("_RINvC1a1fTmmEEB2_", "a::f::<(u32, u32)>", "a::f::<(u32, u32)>");
	check("_RNCNvC1a4main0B3_", "a::main::{closure#0}", "a::main::{closure#0}");
	check("_RNvXs_C1aINtB4_1SmENtB4_2Tr2go", "<a::S<u32> as a::Tr>::go", "<a::S<u32> as a::Tr>::go");
	/* Go's are not mangled */
	assert_null(kx_demangle("main.(*T).Method"));
	assert_null(kx_demangle("main.main.func1"));
	assert_null(kx_demangle("main.Map[go.shape.int_0]"));
}

static double cpu_seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* Parts that refer to the part before twice: each name stands for 2^@levels letters. */
static void expanding(char *out, int levels, bool rust)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	unsigned last = 8; /* Rust: the place of the part before */
	char *at = out;

	at += sprintf(at, rust ? "_RINvC1a1fTmmE" : "_Z1f1a");
	for (int i = 0; i < levels; i++) {
		unsigned n = rust ? last - 1 : i ? 2 * (unsigned)i - 1 : 0;
		char ref[4] = "", *to = ref;

		if (rust)
			last = (unsigned)(at - out) - 2;
		if (rust && n >= 62)
			*to++ = digits[n / 62];
		if (rust || i)
			*to++ = rust ? digits[n % 62] : n < 10 ? (char)('0' + n) : (char)('A' + n - 10);
		at += rust ? sprintf(at, "TB%s_B%s_E", ref, ref) : sprintf(at, "1bIS%s_S%s_E", ref, ref);
	}
	strcpy(at, rust ? "E" : "");
}

static void test_expanding(void **state)
{
	char symbol[4096], *name;
	double begin = cpu_seconds();

	(void)state;
	for (int rust = 0; rust < 2; rust++) {
		expanding(symbol, 8, rust);
		name = kx_demangle(symbol);
		assert_non_null(name);
		assert_true(strlen(name) > 256 * (rust ? 5 : 1));
		free(name);
		expanding(symbol, 18, rust);
		assert_null(kx_demangle(symbol));
		free(kx_demangle_name(symbol));
		assert_true(strlen(symbol) < 400);
	}
	/* Without a bound each level would double time and memory. */
	print_message("%.3f s of CPU time\n", cpu_seconds() - begin);
}

static void add_text(const char *text, size_t len, void *opaque)
{
	char **at = opaque;

	memcpy(*at, text, len);
	*at += len;
	**at = 0;
}

/* Whether the quick way takes @symbol; what it makes of it must then be libiberty's. */
static bool same_as_libiberty(const char *symbol)
{
	char plain[KX_DEMANGLE_PLAIN_MAX + 1], whole[4 * KX_DEMANGLE_PLAIN_MAX], *at = whole, *want;
	size_t len = kx_demangle_plain(symbol, plain);

	if (!len)
		return false;
	plain[len] = 0;
	want = cplus_demangle_v3(symbol, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	if (!want || strcmp(plain, want))
		fail_msg("%s: got '%s', want '%s'", symbol, plain, want ? want : "(none)");
	free(want);
	assert_true(kx_demangle_to(symbol, add_text, &at));
	return true;
}

/* All names of the C++ library and of a program with templates, and what becomes of them by small damage. */
static void test_plain(void **state)
{
	FILE *list = popen("nm -D --defined-only $(g++ -print-file-name=libstdc++.so.6) | sed 's/.* //; s/@.*//' | grep ^_Z", "r");
	size_t names = 0, plain = 0, damaged = 0;
	uint32_t random = 1;
	char symbol[8192];

	(void)state;
	assert_non_null(list);
	while (fgets(symbol, sizeof(symbol), list)) {
		size_t len = strcspn(symbol, "\n");

		symbol[len] = 0;
		names++;
		if (len > 600 || !same_as_libiberty(symbol))
			continue;
		plain++;
		for (int i = 0; i < 4; i++) {
			static const char letters[] = "EIJKLNPRSTZ_0123456789ijlmvbcC";
			char kept;

			random = random * 1664525 + 1013904223;
			kept = symbol[2 + (random >> 8) % (len - 2)];
			symbol[2 + (random >> 8) % (len - 2)] = letters[(random >> 4) % (sizeof(letters) - 1)];
			damaged += same_as_libiberty(symbol);
			symbol[2 + (random >> 8) % (len - 2)] = kept;
		}
	}
	pclose(list);
	print_message("%zu names, %zu of them plain, %zu damaged ones plain\n", names, plain, damaged);
	assert_true(names > 1000 && plain > names / 3 && damaged > 100);
}

static void test_not_mangled(void **state)
{
	static const char *const names[] = { "main", "", "_", "_start", "__libc_start_main", "_Z",
					     "_R", "_Zbad", "_Reset", "_ZN", "foo.isra.0" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_null(kx_demangle(names[i]));
		assert_null(kx_demangle_name(names[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cxx),
		cmocka_unit_test(test_suffixes),
		cmocka_unit_test(test_rust),
		cmocka_unit_test(test_names_of_compilers),
		cmocka_unit_test(test_expanding),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_not_mangled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
