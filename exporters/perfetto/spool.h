// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the scheduler did to the threads, put aside thread by thread while the trace is walked in
 * that order, and read again in order of time. It lies in an unlinked temporary file, so that
 * memory grows with threads only: 24 bytes of disk for each record. Each thread's records are in
 * order already; reading merges the threads.
 */
#ifndef KX_PERFETTO_SPOOL_H
#define KX_PERFETTO_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kx_spooled_kind {
	KX_SPOOLED_IN,	 /* begins to run on cpu */
	KX_SPOOLED_OUT,	 /* leaves cpu, in this state */
	KX_SPOOLED_WAKE, /* becomes runnable: woken by the thread with this id (0: an interrupt), on
			    cpu */
};

#define KX_SPOOLED_NO_CPU UINT16_MAX /* of a wake-up: not known */

struct kx_spooled {
	uint64_t ns;
	uint32_t waker;
	uint32_t thread; /* index */
	uint16_t cpu;
	uint8_t kind; /* enum kx_spooled_kind */
	char state;   /* a letter of off_cpu.h */
};

struct kx_spool_run; /* one thread's records */

/* All zero but fd, which is -1: empty. Free with kx_spool_free. */
struct kx_spool {
	int fd;
	struct kx_spooled *buffer;
	size_t nbuffer;
	uint64_t count;
	uint64_t ns; /* of the newest record, and its thread */
	uint32_t thread;
	struct kx_spool_run *runs, *heap;
	size_t nruns, room, nheap;
	const struct kx_spooled *mapped;
};

/*
 * The records of a thread follow one another. One that goes back in time, as in damaged traces, gets the time of
 * the one before it. Errors: -ENOMEM, those of a temporary file.
 */
int kx_spool_add(struct kx_spool *s, const struct kx_spooled *record);

/* After the last kx_spool_add. Errors: the same. */
int kx_spool_rewind(struct kx_spool *s);
/* The next record of all threads, equal times by thread; NULL after the last. Valid until the spool
 * is freed. */
const struct kx_spooled *kx_spool_next(struct kx_spool *s);
/* The same thread's record after this one; NULL if it is the thread's last. */
const struct kx_spooled *kx_spool_after(const struct kx_spool *s, const struct kx_spooled *record);

void kx_spool_free(struct kx_spool *s);

#endif
