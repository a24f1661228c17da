// SPDX-License-Identifier: BSD-2-Clause
/* The measurement types of a run, and the points that describe its host and process. */
#ifndef KX_AFPERF_TYPES_H
#define KX_AFPERF_TYPES_H

#include <jansson.h>

#include "exporters/afperf/file.h"

enum kx_afperf_type {
	KX_AFPERF_HOST,
	KX_AFPERF_OS,
	KX_AFPERF_OS_VERSION,
	KX_AFPERF_ARCHITECTURE,
	KX_AFPERF_CPU_MODEL,
	KX_AFPERF_CORES,
	KX_AFPERF_RAM,
	KX_AFPERF_STARTED,
	KX_AFPERF_FINISHED,
	KX_AFPERF_COMMAND,
	KX_AFPERF_LOST,
	KX_AFPERF_EVENT,
	KX_AFPERF_CPU,
	KX_AFPERF_RETURN,
	KX_AFPERF_RETURN_MODULE,
	KX_AFPERF_LEFT,
	KX_AFPERF_ARGUMENT, /* the first of eight */
	KX_AFPERF_TYPES = KX_AFPERF_ARGUMENT + 8,
};

struct kx_afperf_run {
	uint64_t id;
	int32_t pid;
	uint64_t types[KX_AFPERF_TYPES]; /* ids; 0: not defined yet */
	uint64_t *next_type;             /* of the file */
};

/* Id of a measurement type; its first use in the run writes its definition, at time @ns. */
uint64_t kx_afperf_type(struct kx_afperf_writer *w, struct kx_afperf_run *run,
			enum kx_afperf_type type, uint64_t ns);
/* Defines one of another name, in int64 nanoseconds or int32 counts. Returns its id. */
uint64_t kx_afperf_new_type(struct kx_afperf_writer *w, struct kx_afperf_run *run, const char *name,
			    bool time, const char *summary, const char *description, uint64_t ns);
/*
 * Points that describe the host and the process, at time 0; the end of profiling is at @end_ns.
 * @session and the run's @process in it may be NULL. Errors: -ENOMEM.
 */
int kx_afperf_describe(struct kx_afperf_writer *w, struct kx_afperf_run *run,
		       const json_t *session, const json_t *process);
void kx_afperf_describe_end(struct kx_afperf_writer *w, struct kx_afperf_run *run,
			    const json_t *session, uint64_t end_ns);

#endif
