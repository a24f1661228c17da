// SPDX-License-Identifier: BSD-2-Clause
#include "binary/values.h"

#include <stdlib.h>

void kx_value_type_free(struct kx_value_type *type)
{
	for (size_t i = 0; i < type->nnames; i++)
		free(type->names[i].name);
	free(type->names);
	free(type->name);
	*type = (struct kx_value_type){ 0 };
}

void kx_value_free(struct kx_value *value)
{
	kx_value_type_free(&value->type);
	free(value->label);
	free(value->unknown);
	*value = (struct kx_value){ 0 };
}
