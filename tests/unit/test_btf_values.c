// SPDX-License-Identifier: BSD-2-Clause
/* BTF is made here by libbpf: the offsets that are expected are those that were written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <bpf/btf.h>

#include "binary/btf_values.h"
#include "bpf/wire.h"

static struct kx_btf_values *make(void)
{
	struct btf *b = btf__new_empty();
	struct kx_btf_values *v;
	int u32, chr, text, inner, outer, pointer, mode, proto, qualified, array;

	assert_non_null(b);
	u32 = btf__add_int(b, "unsigned int", 4, 0);
	chr = btf__add_int(b, "char", 1, BTF_INT_SIGNED);
	text = btf__add_ptr(b, chr);
	array = btf__add_array(b, u32, chr, 16);
	inner = btf__add_struct(b, NULL, 8);
	btf__add_field(b, "len", u32, 32, 0);
	outer = btf__add_struct(b, "file", 64);
	btf__add_field(b, "path", text, 8 * 8, 0);
	btf__add_field(b, NULL, inner, 16 * 8, 0);
	btf__add_field(b, "flag", u32, 24 * 8 + 3, 5);
	btf__add_field(b, "name", array, 32 * 8, 0);
	qualified = btf__add_const(b, outer);
	pointer = btf__add_ptr(b, qualified);
	mode = btf__add_enum(b, "mode", 4);
	btf__add_enum_value(b, "READ", 1);
	btf__add_enum_value(b, "WRITE", 2);
	proto = btf__add_func_proto(b, u32);
	btf__add_func_param(b, "f", pointer);
	btf__add_func_param(b, "mode", mode);
	assert_true(btf__add_func(b, "vfs_open", BTF_FUNC_GLOBAL, proto) > 0);
	assert_int_equal(kx_btf_values_of(b, &v, NULL), 0);
	return v;
}

static struct kx_value_found get(struct kx_btf_values *v, const char *label)
{
	const struct kx_value_request q = { .label = label, .exit = label[0] == 'r' };
	struct kx_value_found found;
	struct kx_err err = { 0 };

	if (kx_btf_values_resolve(v, "vfs_open", &q, &found, &err))
		fail_msg("%s: %s", label, err.text);
	assert_null(found.value.unknown);
	return found;
}

static void test_members(void **state)
{
	struct kx_btf_values *v = make();
	struct kx_value_found found = get(v, "f->path");

	(void)state;
	assert_int_equal(found.value.type.kind, KX_VALUE_STRING);
	assert_int_equal(found.value.fetch.from, KX_FROM_DI);
	assert_int_equal(found.value.fetch.hops, 1);
	assert_int_equal(found.value.fetch.offset[0], 8);
	kx_value_free(&found.value);
	found = get(v, "f->len"); /* in an anonymous structure */
	assert_int_equal(found.value.fetch.offset[0], 20);
	assert_int_equal(found.value.fetch.size, 4);
	kx_value_free(&found.value);
	found = get(v, "f->name");
	assert_int_equal(found.value.fetch.hops, 0);
	assert_int_equal(found.value.fetch.offset[0], 32);
	assert_int_equal(found.value.fetch.most, 16);
	kx_value_free(&found.value);
	found = get(v, "mode");
	assert_int_equal(found.value.type.kind, KX_VALUE_ENUM);
	assert_int_equal(found.value.fetch.from, KX_FROM_SI);
	assert_int_equal(found.value.type.nnames, 2);
	assert_string_equal(found.value.type.names[1].name, "WRITE");
	kx_value_free(&found.value);
	found = get(v, "ret");
	assert_int_equal(found.value.fetch.from, KX_FROM_AX);
	assert_int_equal(found.value.type.kind, KX_VALUE_UNSIGNED);
	kx_value_free(&found.value);
	kx_btf_values_close(v);
}

static void test_errors(void **state)
{
	struct kx_btf_values *v = make();
	struct kx_value_request q = { .label = "f->nam" };
	struct kx_value_found found;
	struct kx_err err = { 0 };

	(void)state;
	assert_int_not_equal(kx_btf_values_resolve(v, "vfs_open", &q, &found, &err), 0);
	assert_string_equal(err.text,
			    "no member 'nam' in struct file (f->nam); did you mean 'name'?");
	q.label = "f->flag";
	assert_int_not_equal(kx_btf_values_resolve(v, "vfs_open", &q, &found, &err), 0);
	assert_string_equal(err.text,
			    "member 'flag' of struct file is a bitfield, which cannot be recorded");
	assert_int_not_equal(kx_btf_values_resolve(v, "no_such", &q, &found, &err), 0);
	assert_string_equal(err.text, "the kernel's BTF has no function no_such, so its parameters "
				      "are unknown; use arg1 to arg6");
	kx_btf_values_close(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
