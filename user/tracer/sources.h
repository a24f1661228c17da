// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sources of events other than probes: BPF programs on tracepoints and perf events. sources.c has
 * one row for each; loading, attaching, detaching and the count of missed events follow from it.
 * A new source is a record kind in bpf/wire.h, its programs in bpf/, a number here, a row there,
 * and an option that sets sources[NUMBER] of struct kx_recording_options.
 */
#ifndef KX_SOURCES_H
#define KX_SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct kx_tracer;

enum kx_source_id {
	KX_SOURCE_LAUNCH,    /* stops the started command at exec */
	KX_SOURCE_PROCESSES, /* forks and execs, where processes join while recording */
	KX_SOURCE_TRANSLATORS, /* execs of programs in which a probe would do harm: kx_tracer_on_process */
	KX_SOURCE_THREADS,   /* starts, ends, names and CPUs of the traced threads */
	KX_SOURCE_SCHED,     /* when threads run, wait and are woken */
	KX_SOURCE_SYSCALLS,
	KX_SOURCE_SAMPLES, /* on-CPU samples, options.sample_hz times per second of CPU time */
	KX_SOURCE_FAULTS,    /* page faults of the traced threads */
	KX_SOURCE_TICKS,     /* timer interrupts of a process that records itself: no records, see kx_tracer_process_runs */
	KX_SOURCES,
};

/*
 * Attaches one source, which must be wanted by the tracer's options. Nothing is done for programs
 * that are attached already, nor for those that this kernel could not load. Errors: the kernel's.
 */
int kx_sources_attach(struct kx_tracer *t, enum kx_source_id id, struct kx_err *err);
void kx_sources_detach(struct kx_tracer *t, enum kx_source_id id);

/* Attaches every wanted source except those attached separately: see on_demand there. */
int kx_sources_attach_wanted(struct kx_tracer *t, struct kx_err *err);
void kx_sources_detach_all(struct kx_tracer *t);

/* The option that enables one of @on, e.g. "--sched"; NULL: none is enabled. */
const char *kx_sources_option(const bool on[KX_SOURCES]);

/*
 * Events of all sources (system calls, page faults) that the kernel did not pass on, in any process,
 * because the CPU was in the same program already: newer kernels may interrupt it for another task.
 */
uint64_t kx_sources_missed(const struct kx_tracer *t);

#endif
