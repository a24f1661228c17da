// SPDX-License-Identifier: BSD-2-Clause
/* What precedes the events of a CPEL file: its header, strings, symbols, definitions of events and tracks. */
#ifndef KX_CPEL_HEAD_H
#define KX_CPEL_HEAD_H

#include "exporters/cpel/file.h"
#include "exporters/exporter.h"

/* Codes 1 to 4 are the historical ones, which the tools take by default. */
enum kx_cpel_code {
	KX_CPEL_RUNNING = 1, /* datum "pid:P tid:T", cpelatency's key */
	KX_CPEL_READY = 2,   /* the same: runnable, until RUNNING */
	KX_CPEL_ENTER = 3,
	KX_CPEL_EXIT = 4,
	KX_CPEL_ON_CPU = 5, /* datum: number of the CPU that the thread moved to */
	KX_CPEL_LOST = 6,   /* datum: events that are missing here */
	KX_CPEL_CUSTOM = 7, /* a custom or typed event as text */
	KX_CPEL_OFF = 8,    /* off the CPU and not runnable; datum: why ("sleeping") */
};

/* Track of the times when no traced thread runs. cpelstate leaves out what begins with "kernel ".
 */
#define KX_CPEL_NOBODY "kernel or others t0(0)"

struct kx_cpel_function {
	uint32_t id;
	uint32_t name; /* string */
};

/* What the first walk over the trace found. */
struct kx_cpel_contents {
	const struct kx_export *x; /* borrowed */
	bool document, little;     /* options */
	uint32_t clock;            /* ticks a second; a microsecond in the document's form */
	uint64_t first;            /* ticks: the trace's first record */
	uint64_t nevents;          /* at most KX_CPEL_MAX_EVENTS */
	struct kx_cpel_strings strings;
	struct kx_cpel_function *functions; /* those with events, in order of their first one */
	size_t nfunctions;
	bool *has_track; /* by thread index: the thread has events; [nthreads]: RUNNING of no traced
			    thread */
	size_t nthreads;
};

/*
 * Adds the names of tracks and definitions to the strings, then writes everything up to the first event.
 * Errors: -ENOMEM, -EFBIG (the strings take 4 GiB). Those of writing stay in c->x->out.
 */
int kx_cpel_head_write(struct kx_cpel_contents *c);

#endif
