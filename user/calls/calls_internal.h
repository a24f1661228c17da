// SPDX-License-Identifier: BSD-2-Clause
/* The state of the call view (calls.h), for the files of this room. */
#ifndef KX_CALLS_INTERNAL_H
#define KX_CALLS_INTERNAL_H

#include "calls/calls.h"
#include "calls/calls_filter.h"
#include "trace/address_space.h"
#include "trace/probe_cost.h"

/* What the first pass finds about a thread. */
struct kx_thread_facts {
	uint64_t start;      /* time of the first record for a visitor, ticks */
	const uint8_t *note; /* its first name, as JSON in the file; NULL if there is none */
	uint32_t note_size;
	const uint8_t *last_note; /* the same of its last name */
	uint32_t last_note_size;
	bool started;
	bool wanted;         /* by --pid and --tid */
};

struct kx_calls {
	struct kx_fdr_file *f;
	struct kx_symbolizer *names;
	struct kx_calls_totals totals;
	struct kx_ready_filter filter;
	struct kx_probe_costs costs; /* nothing if the filter says raw */
	struct kx_call_thread *threads;
	struct kx_thread_facts *facts;
	size_t nthreads;
	bool has_sched;
	bool has_callers;
	struct kx_address_space space; /* of the callers */
	const uint8_t *session;
	uint32_t session_size;
	/* of the walk under way */
	const struct kx_call_visitor *visitor;
	uint64_t bytes_read;
};

#endif
