// SPDX-License-Identifier: BSD-2-Clause
#include "base/usable_cpus.h"

#include <sched.h>
#include <unistd.h>

size_t kx_usable_cpus(size_t most)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = online > 0 ? (size_t)online : 1;
	cpu_set_t set;

	/* fails if there are more CPUs than fit into the set: then the mask hardly matters */
	if (!sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) > 0)
		n = (size_t)CPU_COUNT(&set);
	return n < most ? n : most;
}
