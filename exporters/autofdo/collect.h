// SPDX-License-Identifier: BSD-2-Clause
/* The counts that the AutoFDO export takes from a trace: calls by function, by call instruction, samples. */
#ifndef KX_AUTOFDO_COLLECT_H
#define KX_AUTOFDO_COLLECT_H

#include "exporters/exporter.h"

struct kx_afdo_hits {
	uint64_t address; /* calls: return address; samples: instruction; functions: 0 */
	uint32_t module;  /* 1 + index, if the address is an ELF virtual address; 0: run-time one */
	uint32_t func;    /* called function; samples: 0 */
	uint64_t count;
	uint64_t first;   /* ticks */
};

struct kx_afdo_table {
	struct kx_afdo_hits *items; /* open addressing; count 0: free */
	size_t size, used;
};

struct kx_afdo_trace {
	struct kx_afdo_table functions, callers, samples;
};

/* Walks the trace. Free with kx_afdo_trace_free, after a failure too. */
int kx_afdo_collect(const struct kx_export *x, struct kx_afdo_trace *out, struct kx_err *err);
void kx_afdo_trace_free(struct kx_afdo_trace *t);
/* Compacts the table and sorts it by module, address, function. */
void kx_afdo_table_sort(struct kx_afdo_table *t);

#endif
