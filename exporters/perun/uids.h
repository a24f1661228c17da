// SPDX-License-Identifier: BSD-2-Clause
/*
 * Perun's uids: the names of functions as the profile has them. Functions of the same name in two
 * modules are one uid, and so are names that differ only in bytes that JSON cannot hold. Perun
 * numbers calls and resource types for each uid.
 */
#ifndef KX_PERUN_UIDS_H
#define KX_PERUN_UIDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pair_map.h"
#include "trace/symbolizer.h"

struct kx_perun_uid {
	uint64_t calls; /* so far */
	uint32_t types; /* numbered so far */
};

/* What a function is in the profile, where name and module are all that is known of it. */
struct kx_perun_function {
	uint32_t uid;  /* index */
	uint32_t same; /* id of the first function with its name and module */
};

/* All zero: empty. */
struct kx_perun_uids {
	struct kx_pair_map index; /* (0, function id): index in functions */
	struct kx_perun_function *functions;
	size_t functions_room;
	json_t *by_name;   /* name: index in items */
	json_t *by_module; /* "LENGTH MODULE NAME": function id; LENGTH is that of MODULE */
	struct kx_perun_uid *items;
	size_t count, room;
};

void kx_perun_uids_free(struct kx_perun_uids *u);
/* Borrowed until the next call; NULL without memory. */
const struct kx_perun_function *kx_perun_function(struct kx_perun_uids *u,
						  struct kx_symbolizer *names, uint32_t func);

#endif
