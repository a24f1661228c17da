// SPDX-License-Identifier: BSD-2-Clause
/* What recording.c and recording_prepare.c share. */
#ifndef KX_RECORDING_INTERNAL_H
#define KX_RECORDING_INTERNAL_H

#include <jansson.h>
#include <signal.h>

#include "attach/dlopen_watch.h"
#include "attach/in_process.h"
#include "attach/launch.h"
#include "base/output.h"
#include "collect/caller_set.h"
#include "collect/process_table.h"
#include "record/clock_log.h"
#include "record/cost_watch.h"
#include "record/flight.h"
#include "record/follow.h"
#include "record/notice.h"
#include "record/numbered_files.h"
#include "record/probe_sets.h"
#include "record/recording.h"
#include "record/recording_budget.h"
#include "record/recording_in_process_follow.h"
#include "record/recording_live.h"
#include "record/source_places.h"
#include "record/targets.h"
#include "select/condition_table.h"
#include "trace/fdr_writer.h"
#include "trace/probe_cost.h"
#include "tracer/tracer.h"

/* The present file of a rotated trace. */
struct rotation {
	unsigned number; /* 0: the trace is one file */
	double begun;	 /* kx_monotonic_seconds */
	uint64_t from;	 /* TSC of its start */
	uint64_t cut;	 /* TSC up to which the file before it goes */
	uint64_t continued;		   /* calls that it begins with */
	uint64_t bytes;			   /* of the files before it */
	uint64_t first_bytes; /* that it had when it began */
	struct kx_collector_counts before; /* of the files before it, together */
	struct kx_numbered_files files;
};

struct recording {
	const struct kx_recording_options *o;
	struct kx_recording_result *result;
	struct kx_notices notices;
	struct kx_output output;
	struct kx_launch *launch; /* NULL: no command is started */
	struct kx_targets targets;
	struct kx_follow *follow; /* NULL: no processes join */
	struct kx_selection sel;
	bool selected;
	struct kx_tracer *tracer;
	struct kx_probe_sets probes;
	struct kx_return_leases *leases; /* NULL: there are none, or they are not looked for */
	struct kx_in_process *in_process; /* NULL: only BPF records */
	struct kx_recording_late *late;	  /* NULL: libraries that are loaded later are not recorded */
	struct kx_own_code_children children; /* that have inherited its jumps */
	double in_process_ns; /* that a call recorded by it takes; 0: not known */
	double in_process_since; /* kx_monotonic_seconds when the gate was opened */
	const char *translator; /* the target runs under it (binary/translator.h), without r->follow; NULL: under none */
	bool forbidden; /* it was said that the program has ended the recording in process */
	bool priority_raised; /* of the thread that reads its rings */
	struct kx_exit_move_list moves; /* exits that have moved */
	uint32_t marker_tables; /* how many of KX_MARKER_TABLES have a marker's place */
	struct kx_condition_globs globs; /* texts of conditions */
	json_t *values; /* of the session: see trace/values.h; NULL: no call carries any */
	struct kx_value_types *types; /* while values are planned */
	struct kx_value_patterns *value_patterns;
	uint64_t kernel_missed; /* see kx_probe_sets_missed */
	char mechanisms[80];	/* for people */
	struct kx_dlopen_watch watch;
	char loads_unseen[256]; /* see struct kx_select_options; "" if they are detected in time */
	struct kx_fdr_options fdr;    /* of the trace, or of each dump */
	struct rotation rotation;
	struct kx_fdr_writer *writer; /* NULL in a flight recording */
	struct kx_flight *flight;     /* NULL in any other */
	struct kx_process_table *processes;
	struct kx_caller_set callers; /* with --callers */
	struct kx_source_places *places; /* NULL: not known, or not yet */
	struct kx_collector *collector;
	struct kx_probe_costs costs;  /* kinds only */
	struct kx_recording_budget *budget; /* NULL: there is none */
	struct kx_cost_watch *watch_cost; /* NULL: with a budget */
	struct kx_recording_live *live;	  /* NULL: nobody looks on */
	struct kx_status_watch *status; /* NULL: nobody wants to know */
	struct kx_links calibration;  /* probes on own functions that measured them */
	struct kx_recalibration *recalibration; /* NULL: it is not measured again */
	uint8_t *traits; /* by function id; has room for all functions that may join */
	uint64_t *calls; /* recorded entries, likewise */
	uint64_t *instruction_exits; /* exits that were not seen by return probes, likewise */
	size_t ntraits;
	struct kx_clock_log clocks;
	json_t *info; /* see session_info.h */
	char *session_note;
	uint64_t start_tsc;
	int map_room; /* descriptor of what is reserved for the map at the end; negative: nothing */
	int signal_fd;
	sigset_t old_mask;
};

/* recording_translator.c */
/* Before the probes are attached. Errors: those of kx_translators_check, kx_sources_attach and kx_recording_translator_poll. */
int kx_recording_check_translators(struct recording *r, struct kx_err *err);
/* In each pass, without r->follow. Errors: -EOPNOTSUPP, if the target has come under one: the recording has to end. */
int kx_recording_translator_poll(struct recording *r, struct kx_err *err);

/* recording_follow.c */
/* Whether the trace has run-time addresses, of any process. */
bool kx_recording_wants_mappings(const struct recording *r);
/* Whether no process is to be changed but those that are asked for. */
bool kx_recording_wants_own_probes(const struct kx_recording_options *o);
/* Starts r->follow; @attach: see struct kx_follow_context. */
int kx_recording_follow(struct recording *r,
			int (*attach)(void *ctx, size_t first, size_t *n, struct kx_err *err),
			struct kx_err *err);

/*
 * Before the probes are attached, with --follow and -a: leaves out what processes have changed where probes are for all of
 * them. Whose probes a module gets is found out by the first of these questions, and does not change before they are
 * attached. A process that the filters leave out gets none: what it has changed does not matter. Errors: those of
 * kx_leave_out_all_changed.
 */
int kx_recording_leave_out_changed(struct recording *r, struct kx_err *err);

/* Names what lacks probes in these processes, and counts it in the result and the map: see kx_probe_sets_check. */
void kx_recording_check_probes(struct recording *r, const struct kx_select_process *procs,
			       size_t nprocs);

/*
 * Measures the probes' own time with the tracer's options. Without it a recording is still true: readers
 * then subtract nothing.
 */
void kx_recording_calibrate(struct recording *r, const struct kx_tracer_options *options);
/*
 * Measures it again, at most four times a second and only after new records, on the CPU that had most of them; puts
 * changes into the session (trace/probe_scale.h), and returns whether there were any. Best before the loop waits: it moves the thread to that CPU.
 */
bool kx_recording_recalibrate(struct recording *r, double now);
/* What calls cost now, in thousandths of what they cost at first (KX_PROBE_SCALE_ONE), but not less than that; @steps: kx_calibrate_steps of their kind. */
uint32_t kx_recording_probe_scale(const struct recording *r, bool steps);
/* Before the tracer is freed. */
void kx_recalibration_free(struct recording *r);

/* The same for calls that are only counted: sets `counted` of the kinds. Without it they are assumed. */
void kx_recording_calibrate_counted(struct recording *r);

/*
 * Calls on_status if a second has passed; @start: kx_monotonic_seconds at the beginning. The hottest function comes from
 * the entries that the collector counts in any case (r->calls; with count those in the kernel), compared with those of
 * the status before: nothing is done for it at a probe's hit or for a record.
 */
void kx_recording_status_poll(struct recording *r, double start);
void kx_recording_status_free(struct recording *r);

/* recording_traits.c */
/* Whether processes, and with them functions, may join. */
bool kx_recording_has_dynamic_targets(const struct recording *r);
/* Whether functions of binaries or their markers may be traced, now or later. */
bool kx_recording_has_functions(const struct recording *r);
/* Whether calls' ends are recorded, or timed (kxray top): not with --count, nor --exits=none. */
bool kx_recording_times_calls(const struct recording *r);
/* Whether functions may join the selection. */
bool kx_recording_grows(const struct recording *r);
/* How many functions there may be. */
uint32_t kx_recording_max_functions(const struct recording *r);
/* Has room for all functions that may join, since the collector keeps the address; describes those that there are. -ENOMEM. */
int kx_recording_make_traits(struct recording *r, struct kx_err *err);
/* Describes the functions from index @first on to the collector, and their values to the tracer. Errors: those of kx_recorded_calls_plan. */
int kx_recording_add_traits(struct recording *r, size_t first, bool joined, struct kx_err *err);

/* recording_result.c: at the end, with or without an error. */
void kx_recording_fill_result(struct recording *r);

/* Everything up to the gate's opening: signals, targets, selection, programs, files, probes. */
int kx_recording_prepare(struct recording *r, struct kx_err *err);

/* The path of the trace, or of its first part; free with free(). NULL on -ENOMEM. */
char *kx_recording_first_path(const struct recording *r);
/* Opens it. Errors: those of kx_output_open; -ENOMEM. */
int kx_recording_open_output(struct recording *r, struct kx_err *err);
/*
 * Keeps the trace that it replaces (base/old_output.h), before its map is written. Numbered files of an earlier session are
 * replaced: how much of the disk they take is what --rotate and --keep-files bound. Errors: those of kx_old_output_keep.
 */
int kx_recording_keep_old(struct recording *r, struct kx_err *err);
/* Room for the map with the final counts, which is written beside the first one before it replaces it. */
void kx_recording_reserve_map_room(struct recording *r);
/* The first part is in place, and recording begins. Errors: -ENOMEM. */
int kx_recording_begin_rotation(struct recording *r, struct kx_err *err);
/* After a pass: begins the next part if the present one is large or long enough. */
int kx_recording_rotate(struct recording *r, struct kx_err *err);
/* Writes the map of the present part with this session. Errors: those of kx_session_map_write. */
int kx_recording_put_map(const struct recording *r, json_t *info, struct kx_err *err);
/*
 * Completes the description of the present part (or of the whole trace), of which the writer is
 * finished, and writes its map. @totals: of the recording so far; @last: it ends with this part.
 */
int kx_recording_write_map(struct recording *r, const struct kx_collector_counts *totals, bool last,
			   struct kx_err *err);

#endif
