// SPDX-License-Identifier: BSD-2-Clause
/*
 * When threads run, are ready, and are off the CPU (record --sched), as events in order of time.
 * The calls' walk has a time off the CPU only when it is over, while other threads' events of that
 * time must not precede it in the file. So a first walk, thread by thread, stores the changes of
 * state in a temporary file, and they are merged from there. Memory grows with threads.
 */
#ifndef KX_CPEL_STATES_H
#define KX_CPEL_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "trace/off_cpu.h"

/* What a thread begins to be. */
enum kx_cpel_state {
	KX_CPEL_STATE_RUNS,
	KX_CPEL_STATE_READY,
	KX_CPEL_STATE_OFF,  /* and not ready */
	KX_CPEL_STATE_GONE, /* nothing of it follows */
};

struct kx_cpel_change {
	uint64_t tsc;
	uint16_t state; /* enum kx_cpel_state */
	uint8_t ran;	/* it leaves a CPU */
	char letter;	/* of OFF: see kx_sched_state_name */
};

struct kx_cpel_states {
	FILE *file; /* changes, thread after thread */
	struct kx_cpel_thread_states {
		uint64_t first, end; /* of its changes in the file */
		uint64_t next;	     /* while they are merged */
	} * threads;
	size_t nthreads;
	uint64_t count;			/* changes in the file */
	struct kx_cpel_change *changes; /* the file, mapped; NULL if it is empty */
	uint32_t *heap; /* threads with changes left, the one with the earliest first */
	size_t nheap;
	/* of the thread that is stored */
	bool begun, running;
	uint64_t since, newest;
};

/* Errors: -ENOMEM, those of creating a temporary file. Free with kx_cpel_states_free in any case.
 */
int kx_cpel_states_new(struct kx_cpel_states *s, size_t nthreads, struct kx_err *err);
void kx_cpel_states_free(struct kx_cpel_states *s);

/* The first walk: what happens in thread @thread, in order of time; one thread after the other. */
void kx_cpel_states_begin(struct kx_cpel_states *s, uint32_t thread, uint64_t tsc);
void kx_cpel_states_off(struct kx_cpel_states *s, uint32_t thread,
			const struct kx_sched_interval *i);
void kx_cpel_states_end(struct kx_cpel_states *s, uint32_t thread, uint64_t tsc);
/* After it. Errors: -ENOMEM, those of writing the file (-ENOSPC). */
int kx_cpel_states_place(struct kx_cpel_states *s, struct kx_err *err);

/* From the start again. */
void kx_cpel_states_rewind(struct kx_cpel_states *s);
/* Takes the next change of all threads that is not later than @until; false: there is none. */
bool kx_cpel_states_next(struct kx_cpel_states *s, uint64_t until, uint32_t *thread,
			 struct kx_cpel_change *change);

#endif
