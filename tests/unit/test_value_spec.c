// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "select/value_spec.h"

/* What is parsed, as "PATTERN|LABEL:KIND.SIZE.MOST.LENGTH,...|RESULT..." */
static void is(const char *text, const char *want)
{
	struct kx_value_spec s;
	struct kx_err err = { 0 };
	char got[512];
	size_t n;

	if (kx_value_spec_parse(text, &s, &err))
		fail_msg("%s: %s", text, err.text);
	n = (size_t)snprintf(got, sizeof(got), "%s", s.pattern);
	for (size_t i = 0; i < s.n; i++) {
		const struct kx_value_item *v = &s.items[i];

		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%s", v->exit ? "|>" : "|", v->label);
		if (v->typed)
			n += (size_t)snprintf(got + n, sizeof(got) - n, ":%d.%d.%d.%s", v->kind, v->size, v->most,
					      v->length ? v->length : "");
	}
	assert_string_equal(got, want);
	kx_value_spec_free(&s);
}

static void fails(const char *text, int code, const char *part)
{
	struct kx_value_spec s;
	struct kx_err err = { 0 };

	assert_int_equal(kx_value_spec_parse(text, &s, &err), code);
	if (!strstr(err.text, part))
		fail_msg("%s: %s", text, err.text);
	assert_null(s.pattern);
}

static void test_specs(void **state)
{
	(void)state;
	is("read(arg1:i32, arg2, arg3:u64) -> ret:i64", "read|arg1:0.4.0.|arg2|arg3:1.8.0.|>ret:0.8.0.");
	is("libssl.so*:SSL_write(ssl:ptr,buf:str[num],num:i32)",
	   "libssl.so*:SSL_write|ssl:5.8.0.|buf:8.0.64.num|num:0.4.0.");
	is("handle(req->id, req->path:str, req->hdr.len)", "handle|req->id|req->path:8.0.64.|req->hdr.len");
	is("f(arg1:str[16])", "f|arg1:8.0.16.");
	is("f() -> ret", "f|>ret");
	is("f -> r:x32", "f|>r:2.4.0.");
	is("f->r", "f->r");
	is("f(arg1)->r", "f|arg1|>r");
	is("f( arg1 : bool , arg2:char )", "f|arg1:3.1.0.|arg2:4.1.0.");
	is("f -> ret->error.code:i32", "f|>ret->error.code:0.4.0.");
	is("Foo::operator-> -> ret", "Foo::operator->|>ret");
	is("ns::f(int) (arg1:i32)", "ns::f(int) |arg1:0.4.0.");
}

/* Names of C++ functions. */
static void test_patterns(void **state)
{
	static const char *const plain[] = { "f", "libc.so*:mem*", "f()", "ns::f(int)", "f(Foo)", "f(Foo, Bar)", "f(char*)",
					     "f(std::string)", "f(unsigned long)", "Foo::operator->", "Foo::operator->*",
					     "operator()", "f(int, char const*)", "f(Foo) const", "*(*", "f(arg1:i32", "(arg1)",
					     "f(,)", "f(a,)", "f -> ", "f(x->)", "" };

	(void)state;
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		is(plain[i], plain[i]);
}

static void test_errors(void **state)
{
	(void)state;
	fails("f(arg1:i33)", -EINVAL, "type of arg1");
	fails("f(arg1:str[0])", -EINVAL, "type of arg1");
	fails("f(arg1:str[177])", -EINVAL, "type of arg1");
	fails("f -> ret:what", -EINVAL, "type of ret");
	fails("f(arg1:str[n])", -EINVAL, "length of arg1, n,");
	fails("f(arg1:str[arg2], arg2:str)", -EINVAL, "length of arg1, arg2,");
	fails("f(arg1:str[n]) -> n:u64", -EINVAL, "length of arg1, n,");
	fails("f(arg1, arg1:i32)", -EINVAL, "arg1 twice");
	fails("f(a:u8,b:u8,c:u8,d:u8,e:u8,f:u8,g:u8,h:u8,i:u8)", -E2BIG, "more than 8");
	fails("f(a:u8,b:u8,c:u8,d:u8,e:u8,f:u8,g:u8,h:u8) -> i", -E2BIG, "more than 8");
}

static size_t resolve(const char *text, const struct kx_value_place *place, struct kx_value *v)
{
	struct kx_value_spec s;
	struct kx_err err = { 0 };
	size_t places[KX_MAX_VALUES], n;

	if (kx_value_spec_parse(text, &s, &err) || kx_value_spec_resolve(&s, place, NULL, v, places, &err))
		fail_msg("%s: %s", text, err.text);
	for (size_t i = 0; i < s.n; i++)
		assert_string_equal(v[i].label, s.items[places[i]].label);
	n = s.n;
	kx_value_spec_free(&s);
	return n;
}

static void release(struct kx_value *v, size_t n)
{
	while (n--)
		kx_value_free(&v[n]);
}

/* Numbers come before strings, so that lengths are known. */
static void test_fetches(void **state)
{
	static const struct kx_value_place all = { .args = 6, .exits = true }, syscall = { .args = 6, .exits = true, .syscall = true };
	struct kx_value v[KX_MAX_VALUES];
	size_t n = resolve("f(arg2:str[arg3], arg1:i16, arg3:u32) -> ret", &all, v);

	(void)state;
	assert_int_equal(n, 4);
	assert_string_equal(v[0].label, "arg1");
	assert_int_equal(v[0].fetch.from, KX_FROM_DI);
	assert_int_equal(v[0].fetch.size, 2);
	assert_int_equal(v[0].fetch.flags, KX_FETCH_SIGNED);
	assert_string_equal(v[1].label, "arg3");
	assert_int_equal(v[1].fetch.flags, 0);
	assert_string_equal(v[2].label, "arg2");
	assert_int_equal(v[2].fetch.flags, KX_FETCH_COUNTED);
	assert_int_equal(v[2].fetch.length, 1);
	assert_int_equal(v[2].fetch.size, 0);
	assert_int_equal(v[2].fetch.most, 64);
	assert_int_equal(v[3].fetch.from, KX_FROM_AX);
	assert_int_equal(v[3].fetch.flags, KX_FETCH_EXIT | KX_FETCH_SIGNED);
	release(v, n);
	n = resolve("f(arg4)", &syscall, v);
	assert_int_equal(v[0].fetch.from, KX_FROM_R10);
	assert_int_equal(v[0].type.kind, KX_VALUE_HEX);
	release(v, n);
}

static void test_unknown(void **state)
{
	static const struct kx_value_place two = { .args = 2 };
	struct kx_value v[KX_MAX_VALUES];
	size_t n = resolve("f(arg1:str[arg3], arg3:u32, arg2:u8, arg4:f64) -> ret", &two, v);

	(void)state;
	assert_int_equal(n, 5);
	assert_string_equal(v[0].label, "arg2");
	assert_null(v[0].unknown);
	for (size_t i = 1; i < n; i++)
		assert_non_null(v[i].unknown);
	release(v, n);
}

static void test_unresolved(void **state)
{
	static const struct kx_value_place all = { .args = 6, .exits = true };
	struct kx_value v[KX_MAX_VALUES];
	struct kx_value_spec s;
	struct kx_err err = { 0 };
	size_t places[KX_MAX_VALUES];

	(void)state;
	assert_int_equal(kx_value_spec_parse("f(req->id:u8)", &s, &err), 0);
	assert_int_equal(kx_value_spec_resolve(&s, &all, NULL, v, places, &err), -EINVAL);
	assert_non_null(strstr(err.text, "req->id"));
	kx_value_spec_free(&s);
	assert_int_equal(kx_value_spec_parse("f(arg1:str, arg2:str, arg3:str)", &s, &err), 0);
	assert_int_equal(kx_value_spec_resolve(&s, &all, NULL, v, places, &err), -E2BIG);
	kx_value_spec_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_specs),	cmocka_unit_test(test_patterns), cmocka_unit_test(test_errors),
		cmocka_unit_test(test_fetches), cmocka_unit_test(test_unknown),	 cmocka_unit_test(test_unresolved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
