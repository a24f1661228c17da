// SPDX-License-Identifier: BSD-2-Clause
/* Counts strings. Adding and asking take constant time, which for the kernel's many names is less
 * than sorting them. */
#ifndef KX_STRING_SET_H
#define KX_STRING_SET_H

#include <stddef.h>
#include <stdint.h>

/* All zero: empty. */
struct kx_string_set {
	struct kx_string_place {
		const char *text; /* NULL: free place */
		uint32_t hash, times;
	} * places;	/* open addressing */
	size_t nplaces; /* a power of two */
	size_t count;	/* different strings */
};

/* Adds @text, which must live as long as the set. Errors: -ENOMEM. */
int kx_string_set_add(struct kx_string_set *set, const char *text);

/* How many times @text was added. */
uint32_t kx_string_set_times(const struct kx_string_set *set, const char *text);
void kx_string_set_free(struct kx_string_set *set);

#endif
