// SPDX-License-Identifier: BSD-2-Clause
/*
 * A condition for one function, as the kernel side walks it (struct kx_condition_table): names
 * become fetches, operators ways from one comparison to the next.
 */
#ifndef KX_CONDITION_TABLE_H
#define KX_CONDITION_TABLE_H

#include "select/condition.h"
#include "select/resolved_values.h"

/* The globs and whole texts of all conditions of a recording. */
struct kx_condition_globs {
	struct kx_condition_glob {
		char *text; /* owned */
		size_t length;
		bool exact;
		struct kx_glob glob; /* automaton of it */
	} * items[KX_MAX_GLOBS];
	size_t n;
};
void kx_condition_globs_free(struct kx_condition_globs *g);

/* What names mean in the function. */
struct kx_condition_names {
	const char *function;	       /* its name, for messages */
	const struct kx_value *values; /* of its spec, in the order of the payload: they go first;
					  NULL: it has none */
	size_t n;
	const struct kx_value_place *place;	  /* then arg1 to arg6 and ret */
	const struct kx_value_resolver *resolver; /* then any other name; NULL: none is known */
};

/*
 * Makes one table of all @n conditions, each of which has to be met; n is 1 at least. Errors:
 * -EINVAL (a value that the function has not, a comparison that its type has not, a constant beyond
 * its range), -E2BIG (more than KX_MAX_TERMS together, more than KX_MAX_GLOBS texts, a text that is
 * too long), -ENOMEM, the resolver's.
 */
int kx_condition_compile(const struct kx_condition *const *conditions, size_t n,
			 const struct kx_condition_names *names, struct kx_condition_globs *globs,
			 struct kx_condition_table *out, struct kx_err *err);

/* Whether any of its comparisons is about the result, before names are looked up: "ret". */
bool kx_condition_names_result(const struct kx_condition *c);
/* Whether any may be about an argument. */
bool kx_condition_names_arguments(const struct kx_condition *c);

#endif
