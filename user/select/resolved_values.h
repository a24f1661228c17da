// SPDX-License-Identifier: BSD-2-Clause
/* A spec in one function: where its values are fetched from, in the order in which a record carries them. */
#ifndef KX_RESOLVED_VALUES_H
#define KX_RESOLVED_VALUES_H

#include "binary/value_path.h"
#include "select/value_spec.h"

/*
 * Finds what @item is in a function: label, type and fetch of @out->value, or why it is unknown; of a string with a length of its
 * own that, too. Types that the item has go before those that it finds. Errors: -ENOENT (there is no such name or member),
 * -EINVAL (the type does not fit), -ENOMEM.
 */
typedef int (*kx_value_resolve)(void *ctx, const struct kx_value_item *item, struct kx_value_found *out, struct kx_err *err);

struct kx_value_resolver {
	kx_value_resolve resolve; /* NULL: only arg1 to arg6 and the result are known */
	void *ctx;
};

/* Of the function in which the values are. */
struct kx_value_place {
	unsigned args; /* integer argument registers that are unchanged where its entry is recorded */
	bool syscall;  /* its fourth argument is in another register */
	bool exits;    /* its exits are recorded */
	bool marker;   /* it is none, but a USDT marker: the resolver knows its arguments, too */
};

struct kx_resolved_values {
	/* In the order of the payload, which begins with those of the entry, each time the numbers before the strings, and
	 * ends with those that are unknown. */
	struct kx_value values[KX_MAX_VALUES];
	size_t places[KX_MAX_VALUES]; /* index of the item; of a hidden length: of its string */
	size_t n;		      /* lengths that a string has of its own are values without a label */
};

/*
 * Makes the values of @spec for one function. Free with kx_resolved_values_free. Errors: those of the resolver, -EINVAL (neither a
 * type nor a resolver), -E2BIG (more than a record carries).
 */
int kx_values_resolve(const struct kx_value_spec *spec, const struct kx_value_place *place,
		      const struct kx_value_resolver *resolver, struct kx_resolved_values *out, struct kx_err *err);
void kx_resolved_values_free(struct kx_resolved_values *r);

/*
 * Finds an item that needs no resolver: a register, or what it points to if it is a string. Errors: -EINVAL (it has a name or
 * members), -ENOMEM.
 */
int kx_value_of_register(const struct kx_value_item *item, const struct kx_value_place *place, struct kx_value *out,
			 struct kx_err *err);

/* Finds one item, whose length, if it has one, is not set. Errors: those of the resolver, -EINVAL, -ENOMEM. */
int kx_value_item_resolve(const struct kx_value_item *item, const struct kx_value_place *place,
			  const struct kx_value_resolver *resolver, struct kx_value_found *out, struct kx_err *err);

#endif
