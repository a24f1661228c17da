// SPDX-License-Identifier: BSD-2-Clause
#include "trace_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int kx_trace_names_open(const char *trace, const char *map_path, struct kx_trace_names *out,
			struct kx_err *err)
{
	char *beside = NULL;
	int r = 0;

	memset(out, 0, sizeof(*out));
	if (!map_path && strcmp(trace, "-")) {
		if (asprintf(&beside, "%s.map", trace) < 0)
			return kx_err_set(err, -ENOMEM, "out of memory");
		if (!access(beside, F_OK))
			map_path = beside;
	}
	if (map_path) {
		r = kx_map_read(map_path, &out->map, err);
		out->has_map = !r;
	}
	free(beside);
	return r;
}

void kx_trace_names_free(struct kx_trace_names *names)
{
	if (names->has_map)
		kx_map_free(&names->map);
	names->has_map = false;
}

const char *kx_trace_name(struct kx_trace_names *names, uint32_t id)
{
	char *at = names->id + sizeof(names->id);

	if (names->has_map && id && id <= names->map.nfunctions)
		return kx_map_name(&names->map, id);
	*--at = 0;
	do {
		*--at = (char)('0' + id % 10);
		id /= 10;
	} while (id);
	*--at = '#';
	return at;
}

void kx_trace_prefetch(const struct kx_trace_names *names, uint32_t id, bool symbol)
{
	if (!names->has_map || !id || id > names->map.nfunctions)
		return;
	__builtin_prefetch(symbol ? (const void *)names->map.functions[id - 1].symbol :
				    (const void *)&names->map.functions[id - 1]);
}

const char *kx_trace_module(const struct kx_trace_names *names, uint32_t id)
{
	if (names->has_map && id && id <= names->map.nfunctions)
		return kx_map_module_name(&names->map, id);
	return "";
}

uint64_t kx_trace_ns(uint64_t ticks, uint64_t tsc_hz)
{
	unsigned __int128 ns;

	if (!tsc_hz)
		return ticks;
	if (ticks < 1ull << 33 && tsc_hz < 1ull << 62) /* fits into 64 bits, which is much faster */
		return (ticks * 1000000000 + tsc_hz / 2) / tsc_hz;
	ns = ((unsigned __int128)ticks * 1000000000 + tsc_hz / 2) / tsc_hz;
	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}
