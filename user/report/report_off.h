// SPDX-License-Identifier: BSD-2-Clause
/*
 * The report's times off the CPU, apart from its other numbers: traces without scheduler events
 * neither allocate nor update them. Functions are slots of the report's table.
 */
#ifndef KX_REPORT_OFF_H
#define KX_REPORT_OFF_H

#include <stdint.h>

#include "trace/off_cpu.h"

/* Ticks of a function's completed calls; the rest of their time they were on the CPU. */
struct kx_off_times {
	uint64_t off;      /* of its total time, recursion counted once */
	uint64_t wait;     /* of that: it could have run */
	uint64_t self_off; /* of its self time */
};

/* By function; all zero: none yet. */
struct kx_off_table {
	struct kx_off_times *items;
	uint32_t room;
};

void kx_off_table_free(struct kx_off_table *t);
/* Zeros if no call was off the CPU. */
struct kx_off_times kx_off_get(const struct kx_off_table *t, uint32_t function);

/* A thread that has been off the CPU. */
struct kx_off_thread;

/* @depth: number of open calls. NULL if memory ran out. */
struct kx_off_thread *kx_off_thread_new(uint32_t depth);
void kx_off_thread_free(struct kx_off_thread *t);
void kx_off_add(struct kx_off_thread *t, const struct kx_sched_interval *i);
/* A call begins inside @depth others. Errors: -ENOMEM. */
int kx_off_enter(struct kx_off_thread *t, uint32_t depth);

struct kx_off_call {
	uint32_t function;
	uint32_t depth;      /* number of calls that it is nested in */
	uint64_t took, self; /* ticks */
	bool outermost;      /* none of these is of its function */
	bool measured;       /* its exit was recorded; else only its callees' times count */
};

/* The call ends. Errors: -ENOMEM. */
int kx_off_leave(struct kx_off_table *table, struct kx_off_thread *t, const struct kx_off_call *call);

#endif
