// SPDX-License-Identifier: BSD-2-Clause
/* Counters that the programs keep for each CPU. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "tracer/tracer_internal.h"

int kx_tracer_sums(const struct bpf_map *map, uint32_t first, uint64_t *sums, uint32_t n)
{
	int ncpus = libbpf_num_possible_cpus(), code = 0;
	uint64_t *values = ncpus > 0 ? calloc((size_t)ncpus, sizeof(*values)) : NULL;

	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && !code; i++) {
		__u32 key = first + i;

		sums[i] = 0;
		code = bpf_map_lookup_elem(bpf_map__fd(map), &key, values);
		for (int cpu = 0; cpu < ncpus && !code; cpu++)
			sums[i] += values[cpu];
	}
	free(values);
	return code;
}
