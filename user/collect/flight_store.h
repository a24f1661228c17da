// SPDX-License-Identifier: BSD-2-Clause
/*
 * The memory of a flight recorder: the newest wire records of each CPU, in a fixed size allocated
 * at the start. The oldest are overwritten, a block at a time.
 *
 * CPUs overwrite at different rates, so threads are complete only from the time from which every
 * CPU still has all its records: kx_flight_store_complete_from. Cost: about 7 ns for a record of 32
 * bytes.
 */
#ifndef KX_FLIGHT_STORE_H
#define KX_FLIGHT_STORE_H

#include <stdint.h>

#include "base/err.h"
#include "bpf/wire.h"

#define KX_FLIGHT_MIN_BYTES (64u << 10)

struct kx_flight_store;

/*
 * Memory for the newest @bytes (at least KX_FLIGHT_MIN_BYTES) of every CPU in @online, an array of
 * @ncpus flags. All pages are allocated now. Errors: -ENOMEM, with the sizes.
 */
int kx_flight_store_new(const unsigned char *online, unsigned ncpus, uint64_t bytes,
			struct kx_flight_store **out, struct kx_err *err);
void kx_flight_store_free(struct kx_flight_store *s);

/* Default bytes for each CPU: 64 MiB, less if all CPUs would take over 1/16 of memory. */
uint64_t kx_flight_store_default_bytes(unsigned ncpus);

/*
 * Stores a copy of @rec, taken from the ring of @cpu, with @tsc for its clock. @payload: rec->words
 * words. Records of CPUs without memory (not online at the start) are counted as overwritten.
 */
void kx_flight_store_put(struct kx_flight_store *s, unsigned cpu, const struct kx_wire_record *rec,
			 uint64_t tsc, const uint64_t *payload);

/*
 * @entries and @exits are running totals of the hits that thread @tid has lost; their increase
 * since the last call is stored as a gap from @from to @to (TSC) on @cpu.
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

/* TSC from which all records are still stored; 0 if none was ever overwritten. */
uint64_t kx_flight_store_complete_from(const struct kx_flight_store *s);

/* Each returns 0 or a negative errno, which ends the replay and is its result. */
struct kx_flight_reader {
	/* rec->clock is TSC; records of one CPU come in the order of kx_flight_store_put */
	int (*record)(void *ctx, const struct kx_wire_record *rec, const uint64_t *payload);
	/* all records older than @tsc have been replayed */
	int (*watermark)(void *ctx, uint64_t tsc);
	void *ctx;
};

/*
 * Calls @reader for the records in [@from, @to) (TSC), block by block in order of time, so that the
 * reader has to hold back only few. Errors: the reader's, -ENOMEM.
 */
int kx_flight_store_replay(const struct kx_flight_store *s, uint64_t from, uint64_t to,
			   const struct kx_flight_reader *reader);

#endif
