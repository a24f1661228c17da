// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/cpus.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/kernel_files.h"

static bool cpu_is_online(unsigned cpu)
{
	char path[64];
	uint64_t online;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	if (kx_read_number(path, &online) == 0)
		return online != 0;
	/* CPUs that cannot go offline have no such file */
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u", cpu);
	return access(path, F_OK) == 0;
}

int kx_cpus_read(struct kx_cpus *out, struct kx_err *err)
{
	int n = libbpf_num_possible_cpus();

	if (n < 0)
		return kx_err_set(err, n, "the number of CPUs cannot be read from sysfs: %s",
				  strerror(-n));
	out->n = (unsigned)n;
	out->online = calloc(out->n, 1);
	if (!out->online)
		return kx_err_set(err, -ENOMEM, "no memory for a list of %d CPUs", n);
	for (unsigned cpu = 0; cpu < out->n; cpu++)
		out->online[cpu] = cpu_is_online(cpu);
	return 0;
}

void kx_cpus_free(struct kx_cpus *cpus)
{
	free(cpus->online);
	*cpus = (struct kx_cpus){ 0 };
}
