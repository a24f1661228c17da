// SPDX-License-Identifier: BSD-2-Clause
/*
 * The per-CPU rings on the side of user space: creation, sizes, and reading records in order of
 * their positions. Layout: bpf/wire.h; the writers' side: bpf/ring.bpf.h.
 */
#ifndef KX_RING_H
#define KX_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/wire.h"

struct kx_ring {
	int map_fd;                    /* -1 if the CPU has no ring */
	struct kx_ring_header *header; /* mapped, shared with the BPF programs */
	struct kx_wire_record *slots;
	uint64_t tail; /* next position to read; kx_ring_release stores it to the header */
};

struct kx_rings {
	struct kx_ring *items; /* by CPU */
	unsigned ncpus;
	uint32_t nslots;       /* record slots of each ring, a power of two */
	size_t map_size;       /* bytes of one ring, header included */
};

/*
 * Slots of a ring for @bytes (rounded down to a power of two), or by default: 16 MiB a CPU,
 * less where @ncpus of them would take more than 1/16 of the available memory.
 */
uint32_t kx_ring_slots_for(uint64_t bytes, unsigned ncpus);

/* A ring's map, also the template for the outer map: a file descriptor, to be closed or handed to kx_rings_new, or a negative errno. */
int kx_ring_template(uint32_t nslots);

/*
 * Makes and maps a ring for every CPU in @online (array of @ncpus flags) and puts it into the
 * array of maps @outer_fd. All pages are allocated now. Takes @template_fd over, which becomes the first ring. Errors: -ENOMEM with the size.
 */
int kx_rings_new(int outer_fd, int template_fd, const unsigned char *online, unsigned ncpus, uint32_t nslots,
		 struct kx_rings **out, struct kx_err *err);
void kx_rings_free(struct kx_rings *r);
/* A sum that grows with every record in any ring. */
uint64_t kx_rings_heads(const struct kx_rings *r);

/* First position that no writer has taken. */
static inline uint64_t kx_ring_head(const struct kx_ring *r)
{
	return __atomic_load_n(&r->header->head, __ATOMIC_ACQUIRE);
}

/* The record at @position (below head), or NULL while its writer has not committed it. */
static inline const struct kx_wire_record *kx_ring_peek(const struct kx_rings *rings,
							const struct kx_ring *r, uint64_t position)
{
	const struct kx_wire_record *rec = &r->slots[position & (rings->nslots - 1)];

	return __atomic_load_n(&rec->commit, __ATOMIC_ACQUIRE) == (uint32_t)(position + 1) ? rec
											    : NULL;
}

/* The record at r->tail, which moves behind it; NULL if there is none that is finished. */
static inline const struct kx_wire_record *kx_ring_take(const struct kx_rings *rings,
							struct kx_ring *r)
{
	const struct kx_wire_record *rec = NULL;

	if (r->tail != kx_ring_head(r))
		rec = kx_ring_peek(rings, r, r->tail);
	if (rec)
		r->tail += KX_WIRE_SLOTS(rec->words);
	return rec;
}

/* Word @i of the payload of the record at @position (24 bytes of each further slot). */
static inline uint64_t kx_ring_payload(const struct kx_rings *rings, const struct kx_ring *r,
				       uint64_t position, unsigned i)
{
	const uint64_t *slot =
		(const uint64_t *)&r->slots[(position + 1 + i / 3) & (rings->nslots - 1)];

	return slot[i % 3];
}

/* Returns the slots before r->tail to the writers. */
static inline void kx_ring_release(struct kx_ring *r)
{
	__atomic_store_n(&r->header->tail, r->tail, __ATOMIC_RELEASE);
}

#endif
