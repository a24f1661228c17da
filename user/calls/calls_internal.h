// SPDX-License-Identifier: BSD-2-Clause
/* Inside the call view: filters (calls_filter.c), one thread's stream (calls_stream.c), the walk (calls.c). */
#ifndef KX_CALLS_INTERNAL_H
#define KX_CALLS_INTERNAL_H

#include "trace/address_space.h"
#include "calls/calls.h"
#include "base/pattern.h"

/* The filter, made ready. */
struct kx_ready_filter {
	struct kx_pattern *include, *exclude;
	size_t ninclude, nexclude;
	bool *met;        /* include and exclude patterns that a function of the trace has matched */
	uint8_t *known;   /* by function id, up to those of the map: enum verdict of calls_filter.c */
	size_t nknown;
	bool by_name;     /* there are patterns */
	bool by_time;
	uint64_t from, to; /* ticks of the trace's clock; where nothing is cut, 0 and the last record */
	uint64_t min;     /* ticks */
	uint32_t max_depth; /* UINT32_MAX: any */
};

struct kx_stream;

/* What the first pass finds of a thread. */
struct kx_thread_facts {
	uint64_t start;      /* first record that a visitor is told of, ticks */
	const uint8_t *note; /* its first name, as JSON in the file; NULL if there is none */
	uint32_t note_size;
	bool started;
	bool wanted;         /* by --pid and --tid */
};

struct kx_calls {
	struct kx_fdr_file *f;
	struct kx_symbolizer *names;
	struct kx_calls_totals totals;
	struct kx_ready_filter filter;
	struct kx_call_thread *threads;
	struct kx_thread_facts *facts;
	size_t nthreads;
	bool has_sched;
	bool has_callers;
	struct kx_address_space space; /* for them */
	const uint8_t *session;
	uint32_t session_size;
	/* of the walk under way */
	const struct kx_call_visitor *visitor;
	uint64_t bytes_read;
};

/* Fills everything but from and to. */
int kx_filter_init(struct kx_calls *c, const struct kx_call_filter *filter, struct kx_err *err);
void kx_filter_bounds(struct kx_calls *c, const struct kx_call_filter *filter);
void kx_filter_free(struct kx_ready_filter *f);
/* Whether calls of @func are told, by its name. */
bool kx_filter_wants(struct kx_calls *c, uint32_t func);

/* Takes name and process out of a thread note; -ENOMEM, else 0 and whether they changed. */
int kx_note_name(struct kx_call_thread *t, const uint8_t *body, uint32_t size, bool *changed);

/*
 * One thread, from its records to what a visitor is told. kx_stream_fill reads on until there is
 * something to tell: 1, 0 at the end, or -EBADMSG, -ENOMEM. kx_stream_time is when that happened,
 * kx_stream_emit tells it and returns what the visitor did. A stream that is @alone may tell calls
 * while it reads on; then kx_stream_fill returns what the visitor did, too.
 */
struct kx_stream *kx_stream_new(struct kx_calls *c, size_t batch, bool alone);
void kx_stream_free(struct kx_stream *s);
int kx_stream_open(struct kx_stream *s, size_t thread);
int kx_stream_fill(struct kx_stream *s, struct kx_err *err);
uint64_t kx_stream_time(const struct kx_stream *s);
bool kx_stream_ready(const struct kx_stream *s);
int kx_stream_emit(struct kx_stream *s);

#endif
