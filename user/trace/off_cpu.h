// SPDX-License-Identifier: BSD-2-Clause
/*
 * Off-CPU time (record --sched), as readers add it up. The trace holds one note "sched" for
 * each time that a thread is back on a CPU (see notes.h); no function is entered or left in
 * between. So a thread's clock of ticks off the CPU can be read when a call begins and when it
 * ends, and the difference is exactly the call's.
 */
#ifndef KX_OFF_CPU_H
#define KX_OFF_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One time that a thread was off the CPU; ticks. */
struct kx_sched_interval {
	uint64_t from, to;
	uint64_t wake; /* when it became runnable: from if it always was, to if that is not known */
	char state;    /* a letter as in ps(1), 'N': new thread, '?': not known */
	bool has_waker;
	bool open;	/* at @to it is still off the CPU */
	bool has_waker_cpu;
	uint16_t waker_cpu; /* if has_waker_cpu: where the waker, or the interrupt, was */
	uint32_t waker; /* if has_waker: its thread id, or 0 for an interrupt */
};

/* The letter for a kernel's task state (the bits of task_struct.__state). */
char kx_sched_state(uint32_t bits);
/* Whether a thread in this state was runnable all the time: preempted, or new. */
bool kx_sched_could_run(char state);
/* "sleeping" for 'S' and so on. */
const char *kx_sched_state_name(char state);

/* Ticks of a thread, since its first record. */
struct kx_off_cpu {
	uint64_t off;  /* not on a CPU */
	uint64_t wait; /* of these: runnable */
};

/* Clips the interval to [@begin, @end]; false if nothing is left. */
bool kx_sched_cut(struct kx_sched_interval *i, uint64_t begin, uint64_t end);
void kx_off_cpu_add(struct kx_off_cpu *c, const struct kx_sched_interval *i);

/*
 * Ticks that @c has advanced since its copy @mark was made, in a call of @took ticks. Clamped,
 * since a damaged trace may claim more: on the CPU + off = @took always holds.
 */
struct kx_off_cpu kx_sched_since(const struct kx_off_cpu *c, const struct kx_off_cpu *mark,
				 uint64_t took);

#endif
