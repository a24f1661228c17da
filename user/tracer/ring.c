// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/ring.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/kernel_files.h"

#define DEFAULT_BYTES (16u << 20)
#define MIN_SLOTS 64u
#define MAX_SLOTS (1u << 26)

uint32_t kx_ring_slots_for(uint64_t bytes, unsigned ncpus)
{
	uint32_t slots = MIN_SLOTS;

	if (!bytes) {
		uint64_t share = kx_meminfo_bytes("MemAvailable") / 16 / (ncpus ? ncpus : 1);

		bytes = share && share < DEFAULT_BYTES ? share : DEFAULT_BYTES;
	}
	while (slots < MAX_SLOTS && (uint64_t)slots * 2 * KX_RING_SLOT_SIZE <= bytes)
		slots *= 2;
	return slots;
}

int kx_ring_template(uint32_t nslots)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "kx_ring", sizeof(__u32), KX_RING_VALUE_SIZE,
			      KX_RING_VALUES(nslots), &opts);
}

int kx_rings_new(int outer_fd, const unsigned char *online, unsigned ncpus, uint32_t nslots,
		 struct kx_rings **out, struct kx_err *err)
{
	long page = sysconf(_SC_PAGESIZE);
	struct kx_rings *r = calloc(1, sizeof(*r));

	if (!r || !(r->items = calloc(ncpus, sizeof(*r->items)))) {
		free(r);
		return kx_err_set(err, -ENOMEM, "no memory for the rings of %u CPUs", ncpus);
	}
	r->ncpus = ncpus;
	r->nslots = nslots;
	r->map_size = (size_t)(KX_RING_HEADER_SLOTS + nslots) * KX_RING_SLOT_SIZE;
	r->map_size = (r->map_size + (size_t)page - 1) & ~((size_t)page - 1);
	for (unsigned cpu = 0; cpu < ncpus; cpu++)
		r->items[cpu].map_fd = -1;
	for (__u32 cpu = 0; cpu < ncpus; cpu++) {
		struct kx_ring *ring = &r->items[cpu];
		void *mem;
		int code;

		if (!online[cpu])
			continue;
		ring->map_fd = kx_ring_template(nslots);
		if (ring->map_fd < 0) {
			code = ring->map_fd;
			ring->map_fd = -1;
			goto fail;
		}
		mem = mmap(NULL, r->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->map_fd, 0);
		if (mem == MAP_FAILED) {
			code = -errno;
			goto fail;
		}
		ring->header = mem;
		ring->slots = (struct kx_wire_record *)mem + KX_RING_HEADER_SLOTS;
		code = bpf_map_update_elem(outer_fd, &cpu, &ring->map_fd, BPF_ANY);
		if (code)
			goto fail;
		continue;
fail:
		kx_err_set(err, code,
			   "the ring buffer of CPU %u (%zu KiB) cannot be made: %s; try a smaller "
			   "--ring-size",
			   cpu, r->map_size >> 10, strerror(-code));
		kx_rings_free(r);
		return code;
	}
	*out = r;
	return 0;
}

void kx_rings_free(struct kx_rings *r)
{
	if (!r)
		return;
	for (unsigned cpu = 0; cpu < r->ncpus; cpu++) {
		if (r->items[cpu].header)
			munmap(r->items[cpu].header, r->map_size);
		if (r->items[cpu].map_fd >= 0)
			close(r->items[cpu].map_fd);
	}
	free(r->items);
	free(r);
}

uint64_t kx_rings_heads(const struct kx_rings *r)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; cpu < r->ncpus; cpu++)
		if (r->items[cpu].header)
			sum += kx_ring_head(&r->items[cpu]);
	return sum;
}
