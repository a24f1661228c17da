// SPDX-License-Identifier: BSD-2-Clause
#include "binary/values.h"

#include <stdlib.h>

static void free_type(struct kx_value_type *type)
{
	for (size_t i = 0; i < type->nnames; i++)
		free(type->names[i].name);
	free(type->names);
	free(type->name);
	*type = (struct kx_value_type){ 0 };
}

void kx_value_free(struct kx_value *value)
{
	free_type(&value->type);
	free(value->label);
	free(value->unknown);
	*value = (struct kx_value){ 0 };
}
