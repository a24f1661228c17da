// SPDX-License-Identifier: BSD-2-Clause
/*
 * A value of a call that is recorded: what it is called, what it is, and how the kernel fetches it.
 * Made by the parser of specs from explicit types, or from what debug information says of names and
 * members.
 */
#ifndef KX_VALUES_H
#define KX_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

enum kx_value_kind {
	KX_VALUE_SIGNED,
	KX_VALUE_UNSIGNED,
	KX_VALUE_HEX,
	KX_VALUE_BOOL,
	KX_VALUE_CHAR,
	KX_VALUE_POINTER,
	KX_VALUE_ENUM,
	KX_VALUE_FLOAT,
	KX_VALUE_STRING,
};

struct kx_enum_name {
	int64_t value;
	char *name; /* owned */
};

struct kx_value_type {
	enum kx_value_kind kind;
	uint8_t size;		    /* bytes, of numbers: 1, 2, 4 or 8; strings: 0 */
	char *name;		    /* as the source has it; NULL if unknown; owned */
	struct kx_enum_name *names; /* of an enum; owned */
	size_t nnames;
};

struct kx_value {
	char *label; /* as written: "req->hdr.len"; owned */
	struct kx_value_type type;
	struct kx_fetch fetch;
	char *unknown; /* why it cannot be known ("optimised out"), and then there is no fetch; NULL
			  otherwise; owned */
};

/* Frees what the value has, not the struct itself, and clears it. */
void kx_value_free(struct kx_value *value);

#endif
