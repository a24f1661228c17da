// SPDX-License-Identifier: BSD-2-Clause
/* What a recording holds: shared by recording.c and recording_prepare.c, and by nobody else. */
#ifndef KX_RECORDING_STATE_H
#define KX_RECORDING_STATE_H

#include <jansson.h>
#include <signal.h>

#include "trace/fdr_writer.h"
#include "record/flight.h"
#include "attach/kernel_attach.h"
#include "attach/launch.h"
#include "attach/dlopen_watch.h"
#include "base/output.h"
#include "attach/probes.h"
#include "collect/process_table.h"
#include "record/recording.h"
#include "record/recording_follow.h"
#include "tracer/tracer.h"

struct recording {
	const struct kx_recording_options *o;
	struct kx_recording_result *result;
	struct kx_output output;
	struct kx_launch *launch;
	pid_t *pids; /* the processes named, or started; none with -a */
	int *pidfds; /* -1 once the process has ended */
	size_t npids;
	struct kx_modules *mods; /* one for each process at the start */
	struct kx_select_process *procs;
	size_t nprocs;
	struct kx_follow *follow; /* where processes join */
	struct kx_selection sel;
	bool selected;
	struct kx_tracer *tracer;
	uint64_t kernel_missed; /* see kx_kernel_probes_missed, kx_sources_missed */
	size_t syscalls; /* how many are traced */
	char mechanisms[80]; /* for people */
	struct kx_probes *probes;
	struct kx_kernel_probes *kernel_probes; /* NULL: no kernel functions are traced */
	struct kx_dlopen_watch watch;
	char loads_unseen[256]; /* see struct kx_select_options; "" if they are seen in time */
	struct kx_fdr_options fdr; /* of the trace, or of each dump */
	struct kx_fdr_writer *writer; /* NULL in a flight recording */
	struct kx_flight *flight;     /* NULL in any other */
	struct kx_process_table *processes;
	struct kx_collector *collector;
	uint8_t *traits; /* by function id; with room for all that may come */
	size_t ntraits;
	json_t *info;
	char *session_note;
	uint64_t start_tsc;
	int signal_fd;
	sigset_t old_mask;
};

/* Seconds of CLOCK_MONOTONIC. */
double kx_recording_now(void);

/* Tells the caller's on_notice. */
void kx_recording_notice(const struct recording *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Signals come through r->signal_fd from now on. */
int kx_recording_block_signals(struct recording *r, struct kx_err *err);

/* Everything up to the gate's opening: choose, load, attach, name the files. */
int kx_recording_prepare(struct recording *r, struct kx_err *err);

/* Tells the collector of the functions from index @first on. */
int kx_recording_add_traits(struct recording *r, size_t first, struct kx_err *err);

/* Whether run-time addresses get into the trace, of whatever process. */
static inline bool kx_recording_wants_mappings(const struct recording *r)
{
	return r->o->callers || r->o->sample_hz;
}

/* A target that has ended by now, or 0. */
pid_t kx_recording_ended_process(const struct recording *r);

/* Writes the map, with the session's data as far as they are known. */
int kx_recording_write_map(struct recording *r, struct kx_err *err);

#endif
