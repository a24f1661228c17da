// SPDX-License-Identifier: BSD-2-Clause
/* An item of a spec ("req->hdr.len") in a function: by its types to a fetch. */
#ifndef KX_VALUE_PATH_H
#define KX_VALUE_PATH_H

#include "base/err.h"
#include "binary/type_source.h"
#include "binary/values.h"

#define KX_PATH_POINTERS 4 /* that are followed in one item, at most */

struct kx_value_request {
	const char *label; /* NAME {('->' | '.') MEMBER | '[' NUMBER ']'} */
	bool exit;	   /* the result: any NAME */
	bool typed;	   /* the members below are given and go before what the types say */
	enum kx_value_kind kind;
	uint8_t size;  /* of a number */
	uint16_t most; /* of a string; 0: 64 */
};

/* A value, and where its length is a value of its own (std::string, &str, ...) that too. */
struct kx_value_found {
	struct kx_value value;
	bool counted; /* the value's flags have KX_FETCH_COUNTED; its `length` is the caller's to
			 set */
	struct kx_fetch length;
};

/*
 * Finds @request in @function. What cannot be known has value.unknown and is no error. Release with
 * kx_value_free(&out->value). Errors: -ENOENT (no such parameter or member), -EINVAL (the path does
 * not fit the types; a bitfield), -E2BIG (too many pointers), -ENODATA (a type is incomplete or
 * damaged), -ENOMEM.
 */
int kx_value_path_resolve(const struct kx_type_source *source,
			  const struct kx_type_function *function,
			  const struct kx_value_request *request, struct kx_value_found *out,
			  struct kx_err *err);

#endif
