// SPDX-License-Identifier: BSD-2-Clause
#include "binary/btf_values.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TYPEDEFS     64 /* typedefs and qualifiers around a type, against cycles */
#define POINTER_SIZE 8

struct kx_btf_values {
	struct btf *base, *btf; /* base: of the kernel, below a module's; else NULL */
	struct kx_type_source source;
};

static const char *text(const struct btf *btf, uint32_t offset)
{
	const char *name = offset ? btf__name_by_offset(btf, offset) : NULL;

	return name && *name ? name : NULL;
}

static bool is_wrapper(const struct btf_type *t)
{
	return btf_is_mod(t) || btf_is_typedef(t) || btf_is_type_tag(t);
}

static void describe_integer(const struct btf_type *b, const char *name, const char *alias,
			     struct kx_type *t)
{
	int encoding = btf_int_encoding(b);

	t->is_signed = encoding & BTF_INT_SIGNED;
	t->class = encoding & BTF_INT_BOOL ? KX_TYPE_BOOL : KX_TYPE_INTEGER;
	/* pahole does not mark characters: the C types "char" and "unsigned char" are some unless a typedef
	 * makes them numbers */
	if (t->size == 1 && t->class == KX_TYPE_INTEGER && name && !alias &&
	    (!strcmp(name, "char") || !strcmp(name, "unsigned char")))
		t->class = KX_TYPE_CHAR;
}

static int describe_array(struct kx_btf_values *v, const struct btf_type *b, struct kx_type *t)
{
	const struct btf_array *a = btf_array(b);
	int64_t size = btf__resolve_size(v->btf, a->type);

	t->class = KX_TYPE_ARRAY;
	t->has_target = true;
	t->target.btf = a->type;
	t->count = a->nelems;
	t->size = size > 0 ? (uint64_t)size * a->nelems : 0;
	return 0;
}

static int describe(void *ctx, const union kx_type_handle *handle, struct kx_type *t)
{
	struct kx_btf_values *v = ctx;
	uint32_t id = handle->btf;
	const struct btf_type *b = btf__type_by_id(v->btf, id);
	const char *alias = NULL;

	memset(t, 0, sizeof(*t));
	for (unsigned i = 0; b && is_wrapper(b); i++) {
		if (i == TYPEDEFS)
			return -ENODATA;
		if (btf_is_typedef(b) && !alias)
			alias = text(v->btf, b->name_off);
		id = b->type;
		b = btf__type_by_id(v->btf, id);
	}
	if (!b)
		return -ENODATA;
	t->self.btf = id;
	t->name = text(v->btf, b->name_off);
	if (btf_is_array(b))
		return describe_array(v, b, t);
	if (btf_is_ptr(b)) {
		t->class = KX_TYPE_POINTER;
		t->size = POINTER_SIZE;
		t->has_target = b->type != 0;
		t->target.btf = b->type;
	} else if (btf_is_fwd(b)) {
		t->class = btf_kflag(b) ? KX_TYPE_UNION : KX_TYPE_STRUCT;
		t->incomplete = true;
	} else if (btf_is_int(b) || btf_is_any_enum(b) || btf_is_composite(b) || btf_is_float(b)) {
		t->size = b->size;
		t->class = btf_is_struct(b)  ? KX_TYPE_STRUCT
			   : btf_is_union(b) ? KX_TYPE_UNION
			   : btf_is_float(b) ? KX_TYPE_FLOAT
					     : KX_TYPE_ENUM;
		if (btf_is_int(b))
			describe_integer(b, t->name, alias, t);
		else if (btf_is_any_enum(b))
			/* before Linux 6.0 the sign was not recorded: enums are int then */
			t->is_signed = btf_kflag(b) || btf_is_enum(b);
	}
	if (!t->name || (t->class != KX_TYPE_STRUCT && t->class != KX_TYPE_UNION && alias))
		t->name = alias;
	return 0;
}

static int members(void *ctx, const struct kx_type *t,
		   int (*each)(void *arg, const struct kx_type_member *m), void *arg)
{
	struct kx_btf_values *v = ctx;
	const struct btf_type *b = btf__type_by_id(v->btf, t->self.btf);
	int r = 0;

	if (!b || !btf_is_composite(b))
		return 0;
	for (unsigned i = 0; !r && i < btf_vlen(b); i++) {
		uint32_t bits = btf_member_bit_offset(b, i);
		const struct kx_type_member m = {
			.name = text(v->btf, btf_members(b)[i].name_off),
			.type.btf = btf_members(b)[i].type,
			.offset = bits / 8,
			.bitfield = btf_member_bitfield_size(b, i) || bits % 8,
		};

		r = each(arg, &m);
	}
	return r;
}

static int names(void *ctx, const struct kx_type *t,
		 int (*each)(void *arg, const char *name, int64_t value), void *arg)
{
	struct kx_btf_values *v = ctx;
	const struct btf_type *b = btf__type_by_id(v->btf, t->self.btf);
	int r = 0;

	for (unsigned i = 0; b && btf_is_any_enum(b) && !r && i < btf_vlen(b); i++) {
		const char *name = text(v->btf, btf_is_enum(b) ? btf_enum(b)[i].name_off
							       : btf_enum64(b)[i].name_off);
		int64_t value = btf_is_enum(b) ? btf_enum(b)[i].val
					       : (int64_t)btf_enum64_value(&btf_enum64(b)[i]);

		if (name)
			r = each(arg, name, value);
	}
	return r;
}

int kx_btf_values_of(struct btf *btf, struct kx_btf_values **out, struct kx_err *err)
{
	struct kx_btf_values *v = calloc(1, sizeof(*v));

	if (!v) {
		btf__free(btf);
		return kx_err_set(err, -ENOMEM, "no memory for the kernel's types");
	}
	v->btf = btf;
	v->source = (struct kx_type_source){
		.ctx = v, .describe = describe, .members = members, .names = names
	};
	*out = v;
	return 0;
}

int kx_btf_values_open(const char *module, struct kx_btf_values **out, struct kx_err *err)
{
	struct btf *base = btf__load_vmlinux_btf(), *btf = base;
	int r;

	if (base && module)
		btf = btf__load_module_btf(module, base);
	if (!btf) {
		r = errno == ENOMEM || errno == EPERM || errno == EACCES ? -errno : -ENODATA;
		btf__free(base);
		return kx_err_set(err, r,
				  "%s%s has no readable BTF (%s), so the parameters of its "
				  "functions are unknown; use arg1 to arg6",
				  module ? "the module " : "this kernel", module ? module : "",
				  strerror(errno));
	}
	r = kx_btf_values_of(btf, out, err);
	if (r && btf != base)
		btf__free(base);
	else if (!r)
		(*out)->base = btf != base ? base : NULL;
	return r;
}

void kx_btf_values_close(struct kx_btf_values *v)
{
	if (!v)
		return;
	btf__free(v->btf);
	btf__free(v->base);
	free(v);
}

int kx_btf_values_function(struct kx_btf_values *v, const char *name, struct kx_type_function *f,
			   struct kx_err *err)
{
	int id = btf__find_by_name_kind(v->btf, name, BTF_KIND_FUNC);
	const struct btf_type *b = id > 0 ? btf__type_by_id(v->btf, (uint32_t)id) : NULL;
	const struct btf_type *p = b ? btf__type_by_id(v->btf, b->type) : NULL;

	memset(f, 0, sizeof(*f));
	if (!p || !btf_is_func_proto(p))
		return kx_err_set(err, -ENOENT,
				  "the kernel's BTF has no function %s, so its parameters are "
				  "unknown; use arg1 to arg6",
				  name);
	f->name = text(v->btf, b->name_off);
	f->has_result = p->type != 0;
	f->result.btf = p->type;
	for (unsigned i = 0; i < btf_vlen(p) && f->n < KX_PARAMETERS; i++) {
		const struct btf_param *q = &btf_params(p)[i];

		if (!q->type) /* "..." */
			break;
		f->parameters[f->n++] = (struct kx_type_parameter){
			.name = text(v->btf, q->name_off), .type.btf = q->type, .from = KX_AT_ABI
		};
	}
	return 0;
}

int kx_btf_values_resolve(struct kx_btf_values *v, const char *name,
			  const struct kx_value_request *request, struct kx_value_found *out,
			  struct kx_err *err)
{
	struct kx_type_function f;
	int r = kx_btf_values_function(v, name, &f, err);

	memset(out, 0, sizeof(*out));
	return r ? r : kx_value_path_resolve(&v->source, &f, request, out, err);
}

const struct kx_type_source *kx_btf_values_types(struct kx_btf_values *v)
{
	return &v->source;
}
