// SPDX-License-Identifier: BSD-2-Clause
/* One thing that happened in one thread, as the collector hands it on. */
#ifndef KX_EVENT_H
#define KX_EVENT_H

#include <stdint.h>

#define KX_MAX_ARGS 7 /* six integer registers and the return address */

enum kx_event_kind {
	KX_EVENT_ENTRY = 1,
	KX_EVENT_EXIT,
	KX_EVENT_TAIL_EXIT,
	KX_EVENT_MIGRATE,     /* the thread goes to CPU `cpu` */
	KX_EVENT_THREAD_EXIT, /* nothing of this thread follows */
	KX_EVENT_LOSS,        /* a gap that ends at `tsc` */
	KX_EVENT_NAME,        /* the thread has a new name; for the thread table only */
	KX_EVENT_SAMPLE,      /* the thread is on the CPU; sp is its instruction pointer */
	KX_EVENT_SCHED_OUT,   /* these three as in wire.h; for the thread table only */
	KX_EVENT_SCHED_IN,
	KX_EVENT_WAKE,
	KX_EVENT_UNWIND,      /* this call has ended, its exit will not come */
	KX_EVENT_THREAD_NEW,  /* a thread begins; for the thread table only */
};

struct kx_event {
	uint64_t tsc;  /* TSC ticks */
	uint64_t sp;   /* stack pointer at the function's entry; 0 if unknown */
	uint32_t func; /* function id, 1 to KX_FDR_MAX_FUNC */
	uint16_t cpu;
	uint8_t kind;  /* enum kx_event_kind */
	uint8_t nargs; /* valid words in args: at an entry arguments, at an exit 1 for the result */
	union {
		uint64_t args[KX_MAX_ARGS];
		struct {
			uint64_t from;    /* TSC of the first lost event */
			uint64_t entries; /* lost function entries */
			uint64_t exits;   /* lost function exits */
		} loss;
	};
};

#endif
