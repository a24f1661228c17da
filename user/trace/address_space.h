// SPDX-License-Identifier: BSD-2-Clause
/*
 * The executable mappings of the traced processes, from the map's session ("processes":
 * "mappings"): converts run-time addresses of a trace to addresses of its modules.
 */
#ifndef KX_ADDRESS_SPACE_H
#define KX_ADDRESS_SPACE_H

#include <stddef.h>
#include <stdint.h>

#include "trace/map_file.h"

struct kx_mapping {
	int32_t pid;
	uint32_t module;     /* 1 + index in the map */
	uint64_t start, end; /* run-time addresses */
	uint64_t load_bias;
};

struct kx_address_space {
	struct kx_mapping *items; /* by process and address */
	size_t count, room;
	size_t last; /* index of the last match */
};

/*
 * The mappings of @map's modules, which are those with traced functions; none if @map is NULL.
 * Errors: -ENOMEM.
 */
int kx_address_space_init(struct kx_address_space *a, const struct kx_map *map);
void kx_address_space_free(struct kx_address_space *a);

/*
 * Finds the module of process @pid at *@address: returns 1 + its index in the map and converts the
 * address to the module's ELF address. 0 if the module is not known.
 */
uint32_t kx_address_space_find(struct kx_address_space *a, int32_t pid, uint64_t *address);

#endif
