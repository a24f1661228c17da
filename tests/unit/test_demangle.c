// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/demangle.h"

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
		cmocka_unit_test(test_not_mangled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
