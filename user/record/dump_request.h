// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whether a flight recorder has to write a dump, and why. Triggers that come while a dump is due
 * join it: the most important cause is kept, and the dump waits for the newest of them.
 */
#ifndef KX_DUMP_REQUEST_H
#define KX_DUMP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/dump_cause.h"

/* Ends of processes that are remembered: more than one thread may report that of its process. */
#define KX_MAX_ENDED 256

struct kx_dump_request {
	bool due;
	struct kx_reason why;
	bool caught; /* a trigger or the end of a process is among its causes, whatever @why is */
	uint64_t newest;     /* TSC of its newest trigger */
	double since;	     /* of the first one: kx_monotonic_seconds */
	bool process_ending; /* the cause is an end of process: some of its threads may still run */
	bool uncovered_end;  /* a process has ended since the last dump was begun */
	uint64_t merged;     /* triggers that joined a dump that was due */

	const pid_t *targets; /* the processes named; borrowed */
	bool *target_ended;   /* by index */
	size_t ntargets;
	struct {
		uint32_t tgid;
		uint64_t start;
	} ended[KX_MAX_ENDED];
	unsigned nended;
};

/* Errors: -ENOMEM. */
int kx_dump_request_init(struct kx_dump_request *q, const pid_t *targets, size_t ntargets);
void kx_dump_request_free(struct kx_dump_request *q);

/* A trigger at @why->tsc. */
void kx_dump_request_add(struct kx_dump_request *q, const struct kx_reason *why, double now);
/*
 * The process of @why->event has ended, with the status known; why->kind is set here. Ignored where
 * that end was reported before. Crashes and ends of targets request a dump, normal ends of others
 * don't.
 */
void kx_dump_request_process_ended(struct kx_dump_request *q, struct kx_reason *why, double now);
/* Target @pid has ended, found by its pidfd. Ignored if its exit event came before. */
void kx_dump_request_target_ended(struct kx_dump_request *q, pid_t pid, uint64_t tsc, double now);
/* The dump has been started: none is due now. */
void kx_dump_request_clear(struct kx_dump_request *q);

#endif
