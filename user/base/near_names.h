// SPDX-License-Identifier: BSD-2-Clause
/* Which of some names is meant by one that none of them is: "is it 'report'?". */
#ifndef KX_NEAR_NAMES_H
#define KX_NEAR_NAMES_H

struct kx_near_names {
	const char *wanted; /* to be set; borrowed */
	const char *prefix; /* written before each name, such as "--"; NULL: none */
	unsigned distance;  /* of those in @text */
	char text[256];	    /* the nearest names: "'a' or 'b'"; "" if none is near */
};

/*
 * Looks at one name: near are those with at most two slips of the keyboard (one in four characters), then those that
 * contain the wanted name or are contained in it, if that has three characters.
 */
void kx_near_names_look(struct kx_near_names *n, const char *name);

#endif
