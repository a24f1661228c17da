// SPDX-License-Identifier: BSD-2-Clause
/*
 * One recording from start to end: choose, attach, collect, write, detach.
 *
 *     recording_prepare.c  targets, selection, BPF object, probes, files: up to the gate's opening
 *     recording.c          the loop: events, new processes (follow.c), a collector pass, a flush;
 *                          then close the gate, detach, drain, complete trace and map
 *     recording_rotate.c   --rotate: from one file of the trace to the next
 *     flight.c             in place of writing: dumps (dump_request.c decides, dump_process.c and
 *                          flight_write.c write them in a child process)
 *     recording_budget.c, budget.c  --max-overhead while it records: calls are sampled
 *     recording_status.c  what it has done so far, for a status line
 *     bounded_count.c      before a recording: rates of functions, counted without slowing the target down
 *     count.c, rate.c      no trace: calls are counted in the kernel
 *     recording_live.c     no trace: calls are counted and timed in the kernel, and somebody looks on (kxray top)
 *
 * Everything before the gate's opening either succeeds or leaves nothing behind. After it, every
 * hit is in the file or in a counter, and an error ends the recording but keeps what is written.
 *
 * Cost: a pass every 100 ms (250 while nothing is recorded), or when a ring fills; memory is the rings
 * (16 MiB per CPU by default) plus what waits for its order.
 */
#ifndef KX_RECORDING_H
#define KX_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/in_process.h"
#include "tracer/uprobe_link.h"
#include "collect/collector.h"
#include "base/err.h"
#include "tracer/filters.h"
#include "tracer/return_leases.h"
#include "tracer/sources.h"
#include "tracer/tracer.h"
#include "record/flight.h"
#include "record/live.h"
#include "doctor/price.h"
#include "plan/plan.h"
#include "select/select.h"
#include "select/condition.h"
#include "select/value_spec.h"

#define KX_ROTATION_MIN_BYTES (64u << 10)

/* --rotate: the trace becomes numbered files; all zero: it does not. */
struct kx_rotation_options {
	uint64_t bytes; /* a file ends when it has so many; 0: no limit */
	double seconds; /* and when it covers so many; 0: no limit */
	unsigned keep;	/* the newest so many stay; 0: all */
};

/* What a recording has done so far: see on_status. */
struct kx_recording_status {
	double seconds; /* since it began */
	double left;	/* until its time limit; negative: it has none */
	double interval; /* since the status before, or the beginning; above 0 */
	uint64_t events, lost; /* of the trace so far; of a flight recorder: all of them, kept or not; with count, calls */
	uint64_t new_events;   /* of events: in the interval */
	uint64_t bytes;	       /* written; of a flight recorder: in its dumps */
	unsigned dumps;
	/* The function that was called most in the interval, as far as calls were recorded; borrowed. NULL: none was. */
	const char *hottest;
	double hottest_share; /* its share of these calls, 0 to 1 */
};

struct kx_recording_options {
	const pid_t *pids;    /* attach to these ... */
	size_t npids;
	char *const *command; /* ... or run this; NULL-terminated ... */
	bool all;             /* ... or trace every process but kxray */
	bool follow;          /* children of the traced processes too, and what they run and load */
	bool follow_exact;    /* probes for every process, so that children are traced at once */
	struct kx_filters filters;
	struct kx_select_options select;
	const char *output;   /* path of the trace; the map is PATH.map */
	struct kx_rotation_options rotation;
	double seconds;       /* 0: until a signal or the targets' end */
	int fdr_version;      /* 0: the newest */
	bool compress;        /* the trace is a .zst, as its path says */
	unsigned nargs;       /* argument registers to capture, 0 to 6 */
	bool results;	      /* exits carry rax; those of system calls do with nargs, too */
	unsigned max_depth;   /* deeper calls are not written; 0: all are */
	uint64_t min_duration_ns; /* shorter calls are not written */
	bool count;           /* only count calls: no trace is written; see on_counts */
	const struct kx_live_ops *live; /* with count: time them, too, and let somebody look on; or NULL */
	double max_overhead;  /* percent of the targets' CPU time that the probes may take; 0: no limit */
	bool in_process;      /* of one process: functions are recorded by jumps in its code where that is harmless */
	bool callers;         /* store each call's return address */
	const struct kx_value_spec *specs; /* of nspecs: which values calls carry */
	size_t nspecs;
	bool automatic_values; /* and those of functions without a spec: what is known of their parameters and results */
	const struct kx_condition_rule *rules; /* of nrules: which calls are recorded */
	size_t nrules;
	unsigned sample_hz;   /* on-CPU samples a second; 0: none */
	bool sources[KX_SOURCES]; /* optional ones: see tracer/sources.h */
	const struct kx_flight_options *flight; /* write only dumps; or NULL */
	uint64_t ring_bytes;  /* of one CPU's ring; 0: by memory */
	int mechanism;        /* enum kx_mechanism, or -1: the best that works */
	enum kx_kernel_mechanism kernel_mechanism; /* KX_KERNEL_NONE: the best that works */
	enum kx_wire_clock clock; /* 0: the best that works */
	const char *const *labels; /* KEY=VALUE, see trace/labels.h; borrowed */
	size_t nlabels;
	int argc;             /* kxray's own command line, for the metadata */
	char **argv;
	/* Called once, when all probes are attached and recording begins. @price: of the functions' exits. */
	void (*on_start)(void *ctx, const struct kx_selection *sel, size_t nfunctions,
			 size_t nprobes, const char *mechanism, double attach_seconds,
			 const struct kx_price *price);
	/*
	 * With count, at the end: calls[i] is how often sel->functions[i] was called; out[i]: for how many seconds its calls
	 * were not counted, because of max_overhead.
	 */
	void (*on_counts)(void *ctx, const struct kx_selection *sel, const uint64_t *calls,
			  const double *out);
	/*
	 * Called about once a second while it records, when the loop wakes up anyway. NULL: nobody wants to know, and nothing is
	 * counted for it.
	 */
	void (*on_status)(void *ctx, const struct kx_recording_status *status);
	/* A clause for the user; may be called at any time. */
	void (*on_notice)(void *ctx, const char *text);
	void *ctx;
};

#define KX_UNMATCHED_SHOWN 8
#define KX_UNKNOWN_SHOWN   8

/* Values that cannot be recorded in a function, the first ones, cut. */
struct kx_unknown_values {
	size_t n;
	struct kx_unknown_value {
		char function[128], label[64], why[256];
	} shown[KX_UNKNOWN_SHOWN];
};

struct kx_launch;

struct kx_recording_result {
	bool started;       /* the trace exists; the fields below hold */
	struct kx_collector_counts counts; /* of a flight recording: all records, kept or not */
	struct kx_flight_result flight;
	size_t functions;   /* with probes, or recorded in process */
	struct kx_in_process_counts in_process;
	size_t unprobed;    /* of these: have none in the code of a process */
	/* Include patterns that matched no function all the time: the first ones, borrowed from the options. */
	size_t nunmatched;
	const char *unmatched[KX_UNMATCHED_SHOWN];
	struct kx_unknown_values unknown_values;
	size_t processes;   /* that were traced; 0 with -a: not counted */
	/* Of these, those that joined and were traced in shared libraries only from a moment on. */
	size_t joined;
	uint64_t untraced_max_ns, untraced_ns; /* how long that took: the longest, and all together */
	double cpu_percent; /* without a budget: what the probes took of one CPU, by estimate */
	double budget_percent, budget_taken_percent; /* allowed, and taken by estimate; 0: no budget */
	size_t budget_limited, budget_out; /* functions that were sampled or taken out, that were taken out */
	double budget_all_in_seconds; /* until the last probes went in, of those that the budget let wait; 0: none did */
	size_t budget_waiting; /* functions whose probes never went in */
	bool loads; /* a traced process has loaded a library after the start, as far as that was watched */
	bool calls_move;     /* programs were traced whose calls may end in another thread, or while others begin and end on theirs: goroutines */
	struct kx_return_gaps return_gaps;
	uint64_t unfollowed; /* children that were one too many to follow */
	uint64_t bytes;     /* of the trace file, or of all its parts */
	char kept[256];     /* where the trace is that was there before; "": there was none, or it is not kept */
	unsigned files;     /* parts that were written; 0: it is not rotated */
	unsigned files_kept;
	char newest[256];   /* path of the newest part */
	double seconds;     /* from the gate's opening to its closing */
	double attach_seconds, detach_seconds;
	const char *clock;  /* name of the clock used */
	const char *mechanism;
	const char *kernel_mechanism; /* NULL: no kernel functions are traced */
	uint64_t tsc_hz;
	const char *hz_origin;
	uint64_t clock_error_ns; /* largest of the recording; 0 if the clock needs no conversion */
	char clock_source[32];   /* of the kernel's clocks if it is not the TSC, else "" */
	bool interrupted;   /* a signal ended it */
	struct kx_launch *command; /* still runs, or may: see command_end.h; NULL: it has ended, or there is none */
	bool command_ended;
	bool command_asked; /* to end, by kxray */
	int command_status; /* as waitpid(2) gives it */
};

/*
 * Runs the recording. SIGINT, SIGTERM, SIGHUP and SIGQUIT end it in order; they are blocked from then on. On failure after the start
 * @result->started is true, and what was recorded until then is whole and readable.
 */
int kx_recording_run(const struct kx_recording_options *options, struct kx_recording_result *result,
		     struct kx_err *err);

#endif
