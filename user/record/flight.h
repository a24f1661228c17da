// SPDX-License-Identifier: BSD-2-Clause
/*
 * The flight recorder: recent records stay in memory, and nothing is written until a dump is
 * requested by a trigger, a signal or the end of a process. A forked child then writes what the
 * store holds, from its copy of the memory, while recording continues.
 */
#ifndef KX_FLIGHT_H
#define KX_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/err.h"
#include "collect/collector.h"
#include "record/clock_log.h"
#include "record/dump_hook.h"
#include "record/notice.h"
#include "record/source_places.h"
#include "record/trigger.h"
#include "select/select.h"
#include "tracer/tracer.h"
#include "trace/fdr_writer.h"

#define KX_FLIGHT_DUMPS	   10  /* default of dumps */
#define KX_FLIGHT_INTERVAL 1.0 /* default of interval */

struct kx_flight_options {
	uint64_t bytes;	 /* kept of each CPU; 0: by memory */
	double keep;	 /* seconds; older records are left out of a dump; 0: none are */
	unsigned dumps;	 /* so many of each cause stay, the newest: see numbered_files.h */
	double interval; /* seconds from one dump for a function to the next at the earliest */
	const char *on_dump;	/* command for each dump, see dump_hook.h; NULL: none */
	double on_dump_seconds; /* time limit of a run */
	const struct kx_trigger *triggers;
	size_t ntriggers;
};

struct kx_flight_result {
	unsigned dumps; /* written whole, the removed ones included */
	unsigned failed;
	unsigned kept;	 /* still there */
	uint64_t merged; /* triggers that got no dump of their own */
	uint64_t bytes;	 /* of all dumps */
	uint64_t memory; /* bytes that the store takes */
	char last[256];	 /* path of the newest; "" if there is none */
	struct kx_dump_hook_counts hooks;
};

/* What it uses of its recording; all borrowed. */
struct kx_flight_context {
	struct kx_tracer *tracer;
	struct kx_collector *collector;
	struct kx_process_table *processes;
	const struct kx_selection *sel;
	const struct kx_exit_move_list *moves; /* exits that have moved */
	const struct kx_caller_set *callers;
	struct kx_source_places *const *places; /* *@places is NULL at first */
	bool functions_join; /* more of them may join the selection */
	const pid_t *pids;   /* of the processes named */
	size_t npids;
	const char *output;	   /* dump 3 of "trace.xray" is "trace.3.xray" */
	struct kx_fdr_options fdr; /* of each dump */
	uint64_t start_tsc;
	json_t *info; /* the session: see session_info.h */
	const struct kx_clock_log *clocks;
	/* Adds to the session of a dump what else is known of the recording; called in the child. Errors: -ENOMEM. */
	int (*describe)(const void *ctx, json_t *info);
	const void *ctx;
	/* Gives a trigger's condition on a function to the tracer: *@number, see kx_tracer_add_condition. */
	int (*add_condition)(void *ctx, const struct kx_function *f, const struct kx_condition *c, uint16_t *number,
			     struct kx_err *err);
	void *condition_ctx;
	const struct kx_notices *notices;
};

struct kx_flight;

/*
 * Allocates the store: from now on the collector's records go there. On failure, too, *@out may be
 * set and is to be freed. Errors: -ENOMEM; open(2)'s if the first dump could not be written;
 * -EINVAL.
 */
int kx_flight_new(const struct kx_flight_options *o, const struct kx_flight_context *context,
		  struct kx_flight **out, struct kx_err *err);
/* Waits for a dump that is being written. */
void kx_flight_free(struct kx_flight *f);

/*
 * The functions from index @first on have joined the selection: those that triggers name become
 * triggers when they are attached. Errors: -ENOENT if a trigger names none, unless more
 * functions may come; -EOPNOTSUPP if it needs exits that are not recorded; -E2BIG.
 */
int kx_flight_add_functions(struct kx_flight *f, size_t first, struct kx_err *err);
/* Whether a trigger names the function, which is known before there is a flight recorder. */
bool kx_flight_is_trigger(const struct kx_flight_options *o, const struct kx_selection *sel, const struct kx_function *f);

/* From here on calls can be triggers: the gate is open. */
void kx_flight_begin(struct kx_flight *f);
/* Requests a dump (SIGUSR1). */
void kx_flight_request_dump(struct kx_flight *f);
/* Process @pid, one that was named, has ended. Ignored if its end was reported before. */
void kx_flight_target_ended(struct kx_flight *f, pid_t pid);

/* After each pass of the collector: reads triggers, starts the dump that is due, reports ended
 * ones. */
void kx_flight_poll(struct kx_flight *f);
/* Whether a dump is due that waits until everything before its trigger is out of the rings. */
bool kx_flight_dump_pending(const struct kx_flight *f);

/*
 * After the collector has finished: writes a last dump if one is due, if @asked (a signal or the
 * time limit ended the recording), or if a process has ended since the last one. Waits until it is
 * written. Errors: that of the newest dump that failed.
 */
int kx_flight_end(struct kx_flight *f, bool asked, struct kx_err *err);

/* After kx_flight_end: waits for the runs of on_dump, see kx_dump_hook_finish. */
void kx_flight_finish_hooks(struct kx_flight *f);

void kx_flight_get_result(const struct kx_flight *f, struct kx_flight_result *out);

#endif
