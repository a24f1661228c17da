// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the code of the traced processes lay, by the map's session ("processes": "mappings"):
 * turns the run-time addresses of a trace into those of its modules.
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
	size_t last;              /* met last */
};

/*
 * Of @map (NULL: none is known). Modules without traced functions are not in the map and left
 * out. -ENOMEM.
 */
int kx_address_space_init(struct kx_address_space *a, const struct kx_map *map);
void kx_address_space_free(struct kx_address_space *a);

/*
 * The module of process @pid that holds *@address: 1 + its index in the map, and the address
 * becomes the ELF's. 0 if that is not known.
 */
uint32_t kx_address_space_find(struct kx_address_space *a, int32_t pid, uint64_t *address);

#endif
