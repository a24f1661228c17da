// SPDX-License-Identifier: BSD-2-Clause
/* Which values the kernel side collects: see ../../bpf/values.bpf.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "tracer/tracer_internal.h"

#define SCRATCHES 8 /* of each CPU: KX_SCRATCHES */

int kx_tracer_scratches_size(struct kx_tracer *t)
{
	return bpf_map__set_max_entries(t->skel->maps.kx_value_scratches, t->cpus.n * SCRATCHES);
}

int kx_tracer_values_size(struct kx_tracer *t, uint32_t nfunctions, bool markers)
{
	int code;

	if (!nfunctions)
		return 0;
	t->skel->rodata->kx_values = 1;
	code = bpf_map__set_max_entries(t->skel->maps.kx_value_tables, nfunctions + 1 + (markers ? KX_MARKER_TABLES : 0));
	if (!code)
		code = kx_tracer_scratches_size(t);
	return code;
}

int kx_tracer_set_values(struct kx_tracer *t, uint32_t func, const struct kx_value_table *table, struct kx_err *err)
{
	const int fd = bpf_map__fd(t->skel->maps.kx_value_tables);
	const int code = bpf_map_update_elem(fd, &func, table, BPF_ANY);

	return code ? kx_err_set(err, code, "the values of a function cannot be set: %s", strerror(-code)) : 0;
}

int kx_tracer_set_condition(struct kx_tracer *t, uint32_t func, uint16_t number, uint8_t args, struct kx_err *err)
{
	const int fd = bpf_map__fd(t->skel->maps.kx_value_tables);
	struct kx_value_table table;
	const int code = bpf_map_lookup_elem(fd, &func, &table);

	if (code)
		return kx_err_set(err, code, "the condition of a function cannot be set: %s", strerror(-code));
	table.condition = number;
	table.args = args;
	return kx_tracer_set_values(t, func, &table, err);
}
