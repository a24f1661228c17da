// SPDX-License-Identifier: BSD-2-Clause
/* What value_path.c and value_kind.c share: where the value is, so far. */
#ifndef KX_VALUE_PATH_INTERNAL_H
#define KX_VALUE_PATH_INTERNAL_H

#include "binary/value_abi.h"
#include "binary/value_path.h"

#define KX_PATH_NESTING 16 /* of anonymous members */

struct kx_value_spot {
	struct kx_type type;
	bool in_memory;
	struct kx_fetch fetch; /* from, hops and offsets so far */
	int64_t offset; /* in memory: to be added to the address; else: bytes into the registers */
	uint8_t words[KX_ABI_WORDS];
	unsigned pointers;
	const char *why; /* it cannot be known: a clause */
};

/* Finds the member @name of @type, also in anonymous ones: 1, 0 (none) or a negative errno. */
int kx_value_member(const struct kx_type_source *source, const struct kx_type *type,
		    const char *name, struct kx_type_member *out);
/* Goes on to the member, or to what a pointer points to. Errors: -ENODATA, -E2BIG. */
int kx_spot_member(const struct kx_type_source *source, struct kx_value_spot *spot,
		   const struct kx_type_member *member);
int kx_spot_follow(const struct kx_type_source *source, struct kx_value_spot *spot);
/* Completes the fetch for a number of @size bytes; or for a string that begins at the spot, or to
 * which it points. */
int kx_spot_number(struct kx_value_spot *spot, uint8_t size, bool is_signed, struct kx_fetch *out);
int kx_spot_string(struct kx_value_spot *spot, bool pointer, uint16_t most, struct kx_fetch *out);
/* What the type of the spot is as a value: value.type and fetches of @out. Errors: -EINVAL, -E2BIG,
 * -ENODATA, -ENOMEM. */
int kx_spot_value(const struct kx_type_source *source, struct kx_value_spot *spot,
		  const struct kx_value_request *request, struct kx_value_found *out,
		  struct kx_err *err);

#endif
