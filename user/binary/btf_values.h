// SPDX-License-Identifier: BSD-2-Clause
/* Parameters and results of kernel functions, by the BTF of the kernel and of its modules, for
 * recording them. */
#ifndef KX_BTF_VALUES_H
#define KX_BTF_VALUES_H

#include "base/err.h"
#include "binary/value_path.h"

struct btf;
struct kx_btf_values;

/*
 * Of the running kernel, @module NULL, or of one of its modules. Release with kx_btf_values_close.
 * Errors: -ENODATA (the kernel or the module has no BTF), -EPERM, -ENOMEM.
 */
int kx_btf_values_open(const char *module, struct kx_btf_values **out, struct kx_err *err);
/* Of @btf, which is freed in the end, after an error too. */
int kx_btf_values_of(struct btf *btf, struct kx_btf_values **out, struct kx_err *err);
void kx_btf_values_close(struct kx_btf_values *v);

/* The function @name. Names in @out live until kx_btf_values_close. Errors: -ENOENT. */
int kx_btf_values_function(struct kx_btf_values *v, const char *name, struct kx_type_function *out,
			   struct kx_err *err);

/* kx_value_path_resolve in that function. Errors: those of both. */
int kx_btf_values_resolve(struct kx_btf_values *v, const char *name,
			  const struct kx_value_request *request, struct kx_value_found *out,
			  struct kx_err *err);

/* For kx_value_path_resolve; as long as @v. */
const struct kx_type_source *kx_btf_values_types(struct kx_btf_values *v);

#endif
