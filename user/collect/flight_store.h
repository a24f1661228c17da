// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a flight recorder remembers: the newest wire records of each CPU in memory of a fixed
 * size, allocated at the start. The oldest are overwritten, a block at a time.
 *
 * CPUs overwrite at different speeds, and a thread's story is whole only from the moment on
 * from which every CPU still has all its records: kx_flight_store_complete_from.
 */
#ifndef KX_FLIGHT_STORE_H
#define KX_FLIGHT_STORE_H

#include <stdint.h>

#include "base/err.h"
#include "bpf/wire.h"

#define KX_FLIGHT_MIN_BYTES (64u << 10)

struct kx_flight_store;

/*
 * Room for the newest @bytes (at least KX_FLIGHT_MIN_BYTES) of every CPU in @online, an array of
 * @ncpus flags. Every page is taken now. Errors: -ENOMEM, with the sizes.
 */
int kx_flight_store_new(const unsigned char *online, unsigned ncpus, uint64_t bytes,
			struct kx_flight_store **out, struct kx_err *err);
void kx_flight_store_free(struct kx_flight_store *s);

/* Bytes for each CPU if nothing is said: 64 MiB, less where all together would take over 1/16 of memory. */
uint64_t kx_flight_store_default_bytes(unsigned ncpus);

/*
 * Keeps @rec, which came out of the ring of @cpu, with @tsc for its clock. @payload: rec->words
 * words. Records of CPUs without room (not online at the start) are counted as overwritten.
 */
void kx_flight_store_put(struct kx_flight_store *s, unsigned cpu, const struct kx_wire_record *rec,
			 uint64_t tsc, const uint64_t *payload);

/*
 * Keeps what is new in the running totals of hits that thread @tid has lost, as a gap from @from to
 * @to on @cpu.
 */
void kx_flight_store_put_loss(struct kx_flight_store *s, uint32_t tid, uint64_t entries,
			      uint64_t exits, uint64_t from, uint64_t to, uint16_t cpu);

struct kx_flight_stats {
	uint64_t kept;	      /* records */
	uint64_t overwritten; /* records */
	uint64_t bytes;	      /* of memory, all CPUs together */
	uint64_t bytes_per_cpu;
};

void kx_flight_store_stats(const struct kx_flight_store *s, struct kx_flight_stats *out);

/* TSC from which on nothing has been overwritten; 0 if nothing ever was. */
uint64_t kx_flight_store_complete_from(const struct kx_flight_store *s);

/* Each returns 0 or a negative errno, which ends the replay and is its result. */
struct kx_flight_reader {
	/* rec->clock is TSC; records of one CPU come in the order in which they were put */
	int (*record)(void *ctx, const struct kx_wire_record *rec, const uint64_t *payload);
	/* every record that is older than @tsc has come */
	int (*watermark)(void *ctx, uint64_t tsc);
	void *ctx;
};

/*
 * Tells @reader the records from @from on and older than @to, about in the order of time, so
 * that what it must hold back stays small. Errors: the reader's, -ENOMEM.
 */
int kx_flight_store_replay(const struct kx_flight_store *s, uint64_t from, uint64_t to,
			   const struct kx_flight_reader *reader);

#endif
