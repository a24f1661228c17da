// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rings that the target's own code writes (--in-process): one a CPU, with the wire record and the
 * ring header of bpf/wire.h, in shared memory that is mapped in the target and here. The target can
 * write anything into them: nothing that is read here is trusted.
 *
 * Protocol of the writer (attach/recorder_code.c): `head` advanced by a locked compare and exchange
 * while head + 1 <= limit; else limit is read again from tail; then sp, tid and func, the clock
 * (rdtsc, after the slot is taken), and the last word with commit = position + 1.
 */
#ifndef KX_TARGET_RINGS_H
#define KX_TARGET_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/wire.h"
#include "tracer/ring.h"

#define KX_TARGET_LOSSES 4096 /* threads whose losses are kept apart; a power of two */

/* Totals of one thread; claimed by tid (locked compare and exchange from 0). Clocks are TSC. */
struct kx_target_loss {
	uint32_t tid, cpu;
	uint64_t entries, exits;
	uint64_t first_clock; /* of the first loss since `epoch` of the rings changed */
	uint64_t first_total; /* see struct kx_thread_loss */
	uint64_t last_clock;
	uint32_t epoch, pad; /* the rings' + 1; 0: no loss yet */
	uint64_t pad2;	     /* a cache line: threads lose at the same time */
};

_Static_assert(sizeof(struct kx_target_loss) == 64,
	       "losses of threads have cache lines of their own");

/* How a writer finds the CPU's number. */
enum kx_target_cpu_by {
	/* the limit of a segment that Linux has for this (arch/x86/include/asm/segment.h, GDT_ENTRY_CPUNODE): everywhere, but slow */
	KX_TARGET_SEGMENT,
	KX_TARGET_RDPID,
	/*
	 * What the kernel keeps in memory for a thread that glibc has registered (rseq(2)), and the first one for others: a load, while
	 * the instructions above take some ns and more. A child that runs in its parent's memory, as after vfork, is taken for the parent's
	 * thread, as by its id: then this is where the parent was last.
	 */
	KX_TARGET_RSEQ,
	/* A thread has forbidden itself the time stamp counter (attach/tsc_guard.h): nothing is
	 * written any more, by any thread, as others inherit that. */
	KX_TARGET_FORBIDDEN,
};

/* Offsets from the thread pointer (fs), the same for all threads of a process. */
struct kx_thread_layout {
	uint32_t tid; /* of the thread's id */
	uint32_t cpu; /* of the number that the kernel keeps (struct rseq, cpu_id); 0: not known */
};

struct kx_target_rings {
	uint64_t magic;	 /* KX_PATCH_MAGIC */
	uint32_t nslots; /* of each ring, a power of two */
	uint32_t ncpus;
	uint32_t tid_offset; /* struct kx_thread_layout */
	uint32_t cpu_by;     /* enum kx_target_cpu_by */
	uint64_t ring_bytes; /* of each ring, with its header */
	uint64_t slot_mask;  /* of a slot's offset in bytes */
	uint64_t heartbeat;  /* TSC of the reader's last pass */
	uint32_t cpu_offset; /* struct kx_thread_layout */
	uint32_t pad;
	uint32_t epoch; /* the reader adds 1 before it reads losses */
	uint32_t switched_off; /* 1: a writer has, for that reason; later calls are not even counted */
	uint64_t lost_no_cpu; /* calls on CPUs that have no ring */
	/* losses that found no room in losses[]; they are in the rings' lost[] too */
	uint64_t lost_no_thread;
	/* ticks: a writer that finds a full ring with an older heartbeat sets enabled to 0 */
	uint64_t patience;
	uint64_t pad2[5];
	struct kx_target_loss losses[KX_TARGET_LOSSES];
	/* then, 64 bytes aligned: for each CPU struct kx_ring_header and its slots */
};

_Static_assert(sizeof(struct kx_target_rings) % 64 == 0, "rings begin at a cache line");

#define KX_TARGET_RING_BYTES(nslots) \
	(sizeof(struct kx_ring_header) + (size_t)(nslots)*KX_RING_SLOT_SIZE)
#define KX_TARGET_RING_AT(rings, cpu)                      \
	((struct kx_ring_header *)((char *)((rings) + 1) + \
				   (size_t)(cpu)*KX_TARGET_RING_BYTES((rings)->nslots)))

/* Bytes of all of it, in whole pages. */
size_t kx_target_rings_size(uint32_t nslots, unsigned ncpus);
/* Prepares zeroed memory @mem of that size. */
void kx_target_rings_init(struct kx_target_rings *mem, uint32_t nslots, unsigned ncpus,
			  const struct kx_thread_layout *layout, uint64_t patience);
/*
 * Views of its rings for the reader, with ->tail set and no map_fd; the sizes are not taken from @mem,
 * which the process can change. @mem is borrowed; free with kx_target_rings_close. -ENOMEM.
 */
int kx_target_rings_open(struct kx_target_rings *mem, uint32_t nslots, unsigned ncpus,
			 struct kx_rings **out, struct kx_err *err);
void kx_target_rings_close(struct kx_rings *rings);

#endif
