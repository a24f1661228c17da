// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "select/resolved_values.h"
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
	   "libssl.so*:SSL_write|ssl:5.8.0.|buf:8.0.0.num|num:0.4.0.");
	is("handle(req->id, req->path:str, req->hdr.len)", "handle|req->id|req->path:8.0.0.|req->hdr.len");
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
	static const char *const plain[] = { "f", "libc.so*:mem*", "f()", "ns::f(int)", "f(char*)",
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

/* "f(Foo, Bar)" may be a function of C++. */
static void test_uncertain(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		bool uncertain;
	} cases[] = { { "f(Foo)", 1, true },	     { "f(Foo, Bar)", 2, true }, { "f(Foo, Foo)", 0, false },
		      { "f(a,b,c,d,e,f,g,h,i)", 0, false }, { "f(Foo) -> ret", 2, false }, { "f(a, b->c)", 2, false },
		      { "f(a, b[3])", 2, false },    { "f(a, arg1)", 2, false }, { "f(a, b:u8)", 2, false } };
	struct kx_value_spec s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(kx_value_spec_parse(cases[i].text, &s, NULL), 0);
		assert_int_equal(s.n, cases[i].n);
		assert_int_equal(s.uncertain, cases[i].uncertain);
		assert_string_equal(s.pattern, s.n ? "f" : cases[i].text);
		if (s.n)
			assert_string_equal(s.text, cases[i].text);
		kx_value_spec_free(&s);
	}
}

static struct kx_resolved_values resolve(const char *text, const struct kx_value_place *place,
					 const struct kx_value_resolver *resolver)
{
	struct kx_resolved_values v;
	struct kx_value_spec s;
	struct kx_err err = { 0 };

	if (kx_value_spec_parse(text, &s, &err) || kx_values_resolve(&s, place, resolver, &v, &err))
		fail_msg("%s: %s", text, err.text);
	for (size_t i = 0; i < v.n; i++)
		if (*v.values[i].label)
			assert_string_equal(v.values[i].label, s.items[v.places[i]].label);
	kx_value_spec_free(&s);
	return v;
}

/* Numbers come before strings, so that lengths are known. */
static void test_fetches(void **state)
{
	static const struct kx_value_place all = { .args = 6, .exits = true }, syscall = { .args = 6, .exits = true, .syscall = true };
	struct kx_resolved_values r = resolve("f(arg2:str[arg3], arg1:i16, arg3:u32) -> ret", &all, NULL);
	const struct kx_value *v = r.values;

	(void)state;
	assert_int_equal(r.n, 4);
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
	kx_resolved_values_free(&r);
	r = resolve("f(arg4)", &syscall, NULL);
	assert_int_equal(v[0].fetch.from, KX_FROM_R10);
	assert_int_equal(v[0].type.kind, KX_VALUE_HEX);
	kx_resolved_values_free(&r);
}

static void test_unknown(void **state)
{
	static const struct kx_value_place two = { .args = 2 };
	struct kx_resolved_values r = resolve("f(arg1:str[arg3], arg3:u32, arg2:u8, arg4:f64) -> ret", &two, NULL);

	(void)state;
	assert_int_equal(r.n, 5);
	assert_string_equal(r.values[0].label, "arg2");
	assert_null(r.values[0].unknown);
	for (size_t i = 1; i < r.n; i++)
		assert_non_null(r.values[i].unknown);
	kx_resolved_values_free(&r);
}

/* A string with its length beside it, at the register's address; "odd" cannot be known. */
static int resolve_string(void *ctx, const struct kx_value_item *item, struct kx_value_found *out, struct kx_err *err)
{
	(void)ctx, (void)err;
	*out = (struct kx_value_found){
		.value = { .label = strdup(item->label),
			   .type = { .kind = KX_VALUE_STRING },
			   .fetch = { .from = KX_FROM_SI, .hops = 1, .most = 64, .flags = KX_FETCH_COUNTED } },
		.counted = true,
		.length = { .from = KX_FROM_SI, .hops = 1, .size = 8, .offset = { 8 } },
	};
	if (!strcmp(item->label, "odd"))
		out->value.unknown = strdup("optimised out");
	return out->value.label ? 0 : -ENOMEM;
}

/* The length that a string has of its own is a hidden value, of the same event. */
static void test_hidden(void **state)
{
	static const struct kx_value_place all = { .args = 6, .exits = true };
	static const struct kx_value_resolver resolver = { resolve_string, NULL };
	struct kx_resolved_values r = resolve("f(arg1, s, odd) -> ret", &all, &resolver);
	const struct kx_value *v = r.values;

	(void)state;
	assert_int_equal(r.n, 6);
	assert_string_equal(v[0].label, "arg1");
	assert_string_equal(v[1].label, "");
	assert_int_equal(v[1].fetch.offset[0], 8);
	assert_int_equal(r.places[1], 1);
	assert_string_equal(v[2].label, "s");
	assert_int_equal(v[2].fetch.length, 1);
	assert_string_equal(v[3].label, "");
	assert_int_equal(v[3].fetch.flags, KX_FETCH_EXIT);
	assert_string_equal(v[4].label, "ret");
	assert_int_equal(v[4].fetch.length, 0);
	assert_int_equal(v[4].fetch.flags, KX_FETCH_EXIT | KX_FETCH_COUNTED);
	assert_string_equal(v[5].label, "odd");
	assert_non_null(v[5].unknown);
	kx_resolved_values_free(&r);
}

static void fails_to_resolve(const char *text, const struct kx_value_resolver *resolver, int code, const char *part)
{
	static const struct kx_value_place all = { .args = 6, .exits = true };
	struct kx_resolved_values v;
	struct kx_value_spec s;
	struct kx_err err = { 0 };

	assert_int_equal(kx_value_spec_parse(text, &s, &err), 0);
	assert_int_equal(kx_values_resolve(&s, &all, resolver, &v, &err), code);
	assert_non_null(strstr(err.text, part));
	kx_value_spec_free(&s);
}

/* Strings without a size share what a record has for them: 22 words, of which each has one for its length. */
static void test_shared(void **state)
{
	static const struct kx_value_place all = { .args = 6, .exits = true };
	struct kx_resolved_values r = resolve("f(arg1:str, arg2:str[9], arg3:str, arg4:u8)", &all, NULL);

	(void)state;
	assert_string_equal(r.values[1].label, "arg1");
	assert_int_equal(r.values[1].fetch.most, 64);
	assert_int_equal(r.values[2].fetch.most, 9);
	assert_int_equal(r.values[3].fetch.most, 64);
	kx_resolved_values_free(&r);
	r = resolve("f(arg1:str, arg2:str[9], arg3:str, arg4:str, arg5:u8)", &all, NULL);
	assert_int_equal(r.values[1].fetch.most, 40);
	assert_int_equal(r.values[2].fetch.most, 9);
	assert_int_equal(r.values[4].fetch.most, 40);
	kx_resolved_values_free(&r);
}

/* What a string may have at most, a call has room for. */
static void test_longest(void **state)
{
	static const struct kx_value_place all = { .args = 6, .exits = true };
	struct kx_resolved_values r;
	char text[64];

	(void)state;
	snprintf(text, sizeof(text), "f(arg1:str[%d]) -> ret", KX_STRING_LONGEST);
	r = resolve(text, &all, NULL);
	assert_int_equal(r.values[0].fetch.most, KX_STRING_LONGEST);
	kx_resolved_values_free(&r);
}

static void test_unresolved(void **state)
{
	static const struct kx_value_resolver resolver = { resolve_string, NULL };

	(void)state;
	fails_to_resolve("f(req->id:u8)", NULL, -EINVAL, "req->id");
	fails_to_resolve("f(arg1:str[64], arg2:str[64], arg3:str[64])", NULL, -E2BIG, "bytes");
	fails_to_resolve("f(a.a, b, c, d, e)", &resolver, -E2BIG, "more than 8 values");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_specs),	cmocka_unit_test(test_patterns), cmocka_unit_test(test_errors),
		cmocka_unit_test(test_fetches), cmocka_unit_test(test_unknown),	 cmocka_unit_test(test_unresolved),
		cmocka_unit_test(test_uncertain), cmocka_unit_test(test_shared), cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
