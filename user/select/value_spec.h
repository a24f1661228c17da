// SPDX-License-Identifier: BSD-2-Clause
/*
 * What of a call is recorded, as -f has it behind a pattern:
 *
 *     spec = PATTERN [ '(' item {',' item} ')' ] [ ' -> ' item ]
 *     item = NAME {('->' | '.') MEMBER | '[' NUMBER ']'} [':' TYPE]
 *     TYPE = u8..u64 | i8..i64 | x8..x64 | bool | char | ptr | f32 | f64 | str | str[BYTES] | str[LABEL]
 *
 * arg1 to arg6 are the integer argument registers, of a marker (usdt:...) arg1 to arg12 its arguments; behind ' -> ' any NAME is
 * the result. What a name or a member is, and its type if it has none here, resolved_values.h finds.
 */
#ifndef KX_VALUE_SPEC_H
#define KX_VALUE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "binary/values.h"

struct kx_value_item {
	char *label;	   /* as written, without the type: "req->hdr.len"; owned */
	char *name;	   /* its first part; owned */
	const char *path;  /* what follows that in label: "->hdr.len"; "": nothing; borrowed from label */
	unsigned argument; /* 1 to 6: name is arg1 to arg6; 0: another */
	bool exit;	   /* the result */
	bool typed;	   /* the members below are given; else they have to be found, but for arg1 to arg6: x64 */
	enum kx_value_kind kind;
	uint8_t size;  /* of a number */
	uint16_t most; /* of a string; 0: KX_STRING_MOST, or less if a record has no room for that */
	char *length;  /* of a string: label of the item with its length; or NULL; owned */
};

struct kx_value_spec {
	char *pattern; /* owned */
	char *text;    /* owned */
	/*
	 * "f(Foo, Bar)": names without types, members or a result, which may be the parameters of a C++ function. It has values
	 * only if no function matches the whole text.
	 */
	bool uncertain;
	struct kx_value_item items[KX_MAX_VALUES];
	size_t n; /* 0: @pattern is the whole text */
};

/*
 * Parses @text. What can only be a list of parameters of a C++ function, or anything else that is no list of items, is part of
 * the pattern: "ns::f(int, char*)", "operator->". Errors: -EINVAL (an item of arg1 to arg6, or the result, has an
 * unknown type; two have one label; the length of a string is no item), -E2BIG (more than KX_MAX_VALUES, or more than the
 * payload of a record holds), -ENOMEM.
 */
int kx_value_spec_parse(const char *text, struct kx_value_spec *out, struct kx_err *err);
void kx_value_spec_free(struct kx_value_spec *spec);

/*
 * The item at @at, as a spec has it: its end, behind blanks, or NULL if there is none or its type is unknown; then *@bad says whether
 * it is certainly a wrong type. Free with kx_value_item_free in any case.
 */
const char *kx_value_item_parse(struct kx_value_item *item, const char *at, bool exit, bool *bad);
void kx_value_item_free(struct kx_value_item *item);

#endif
