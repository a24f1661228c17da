// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bpf/wire.h"
#include "select/prototype_table.h"
#include "select/prototypes.h"

static struct kx_fetch get(const struct kx_prototype *p, const char *label, bool exit)
{
	const struct kx_value_request q = { .label = label, .exit = exit };
	struct kx_value_found found;
	struct kx_err err = { 0 };
	struct kx_fetch fetch;

	if (kx_prototype_resolve(p, &q, &found, &err))
		fail_msg("%s", err.text);
	assert_null(found.value.unknown);
	fetch = found.value.fetch;
	kx_value_free(&found.value);
	return fetch;
}

static void test_library(void **state)
{
	const struct kx_value_request near = { .label = "cound" };
	struct kx_value_found found;
	struct kx_fetch fetch;
	struct kx_prototype p;
	struct kx_err err = { 0 };

	(void)state;
	assert_true(kx_prototype_of_library("read", &p));
	assert_string_equal(p.function.name, "read");
	assert_int_equal(p.function.n, 3);
	fetch = get(&p, "fd", false);
	assert_int_equal(fetch.from, KX_FROM_DI);
	assert_int_equal(fetch.size, 4);
	assert_true(fetch.flags & KX_FETCH_SIGNED);
	fetch = get(&p, "count", false);
	assert_int_equal(fetch.from, KX_FROM_DX);
	assert_int_equal(fetch.size, 8);
	fetch = get(&p, "ret", true);
	assert_int_equal(fetch.from, KX_FROM_AX);
	assert_int_not_equal(kx_prototype_resolve(&p, &near, &found, &err), 0);
	assert_string_equal(err.text, "no parameter 'cound' in read; did you mean 'count'?");
	assert_true(kx_prototype_of_library("open", &p));
	fetch = get(&p, "path", false);
	assert_int_equal(fetch.size, 0); /* a string */
	assert_false(kx_prototype_of_library("ead", &p));
	assert_false(kx_prototype_of_library("reads", &p));
}

static void test_syscalls(void **state)
{
	struct kx_fetch fetch;
	struct kx_prototype p;

	(void)state;
	assert_true(kx_prototype_of_syscall("openat", &p));
	assert_int_equal(p.function.n, 4);
	fetch = get(&p, "filename", false);
	assert_int_equal(fetch.from, KX_FROM_SI);
	assert_int_equal(fetch.size, 0);
	fetch = get(&p, "mode", false);
	assert_int_equal(fetch.from, KX_FROM_R10);
	assert_int_equal(fetch.size, 2);
	assert_true(kx_prototype_of_syscall("write", &p));
	fetch = get(&p, "buf", false);
	assert_int_equal(fetch.size, 8); /* its bytes are no text */
}

static void test_every_row(void **state)
{
	struct kx_prototype p;

	(void)state;
	assert_true(kx_library_prototypes_count > 80);
	assert_true(kx_syscall_prototypes_count > 280);
	for (size_t i = 0; i < kx_library_prototypes_count; i++)
		if (kx_prototype_parse(kx_library_prototypes[i], &p))
			fail_msg("%s", kx_library_prototypes[i]);
	for (size_t i = 0; i < kx_syscall_prototypes_count; i++)
		if (kx_prototype_parse(kx_syscall_prototypes[i], &p))
			fail_msg("%s", kx_syscall_prototypes[i]);
}

static void test_not_prototypes(void **state)
{
	static const char *const bad[] = {
		"", "read", "(", "int f(", "int f(int", "int f(frob x)", "int f(int a,", "()"
	};
	struct kx_prototype p;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(kx_prototype_parse(bad[i], &p), -22);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_syscalls),
		cmocka_unit_test(test_every_row),
		cmocka_unit_test(test_not_prototypes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
