// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a USDT marker carries: its note says where each argument is, which differs from place to place, so that each place has
 * a table of its own, and all have one description.
 */
#ifndef KX_USDT_VALUES_H
#define KX_USDT_VALUES_H

#include "binary/usdt_markers.h"
#include "select/resolved_values.h"

/*
 * Makes the values of @spec for @marker in @elf: @out as kx_values_resolve does, and in @tables (of
 * marker->nplaces) how they are fetched at each place. An argument that is not known at one place but at another cannot be read there.
 * @named: the marker itself was asked for, not a pattern of many; then an argument that it does not have is an error. Errors: -ENOENT,
 * -EINVAL (a result, a member), -E2BIG, -ENOMEM.
 */
int kx_usdt_values_resolve(struct kx_elf *elf, const struct kx_usdt_marker *marker, bool named, const struct kx_value_spec *spec,
			   struct kx_resolved_values *out, struct kx_value_table *tables, struct kx_err *err);

#endif
