// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/target_rings.h"

#include <cpuid.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <x86intrin.h>

#include "tracer/patch_area.h"

#define RDPID_LEAF 7
#define RDPID_ECX  (1u << 22) /* Intel SDM, CPUID.(EAX=7,ECX=0):ECX[22] */

size_t kx_target_rings_size(uint32_t nslots, unsigned ncpus)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t size =
		sizeof(struct kx_target_rings) + (size_t)ncpus * KX_TARGET_RING_BYTES(nslots);

	return (size + page - 1) & ~(page - 1);
}

static bool has_rdpid(void)
{
	unsigned a, b, c, d;

	return __get_cpuid_count(RDPID_LEAF, 0, &a, &b, &c, &d) && c & RDPID_ECX;
}

void kx_target_rings_init(struct kx_target_rings *mem, uint32_t nslots, unsigned ncpus,
			  const struct kx_thread_layout *layout, uint64_t patience)
{
	mem->nslots = nslots;
	mem->ncpus = ncpus;
	mem->ring_bytes = KX_TARGET_RING_BYTES(nslots);
	mem->slot_mask = (uint64_t)(nslots - 1) * KX_RING_SLOT_SIZE;
	mem->tid_offset = layout->tid;
	mem->cpu_offset = layout->cpu;
	if (layout->cpu)
		mem->cpu_by = KX_TARGET_RSEQ;
	else
		mem->cpu_by = has_rdpid() ? KX_TARGET_RDPID : KX_TARGET_SEGMENT;
	mem->patience = patience;
	mem->heartbeat = __rdtsc();
	__atomic_store_n(&mem->magic, KX_PATCH_MAGIC, __ATOMIC_RELEASE);
}

int kx_target_rings_open(struct kx_target_rings *mem, uint32_t nslots, unsigned ncpus,
			 struct kx_rings **out, struct kx_err *err)
{
	struct kx_rings *r = calloc(1, sizeof(*r));

	if (!r || !(r->items = calloc(ncpus, sizeof(*r->items)))) {
		free(r);
		return kx_err_set(err, -ENOMEM, "no memory for the views of %u rings", ncpus);
	}
	r->ncpus = ncpus;
	r->nslots = nslots;
	r->map_size = KX_TARGET_RING_BYTES(r->nslots);
	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		struct kx_ring_header *header =
			(struct kx_ring_header *)((char *)(mem + 1) + cpu * r->map_size);

		r->items[cpu] = (struct kx_ring){
			.map_fd = -1,
			.header = header,
			.slots = (struct kx_wire_record *)(header + 1),
			.tail = __atomic_load_n(&header->tail, __ATOMIC_RELAXED),
		};
	}
	*out = r;
	return 0;
}

void kx_target_rings_close(struct kx_rings *rings)
{
	if (!rings)
		return;
	free(rings->items);
	free(rings);
}
