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

/* Takes @fd over, or makes the map if that is negative. */
static int make_ring(struct kx_rings *r, unsigned cpu, int fd)
{
	struct kx_ring *ring = &r->items[cpu];
	void *mem;

	if (fd < 0)
		fd = kx_ring_template(r->nslots);
	if (fd < 0)
		return fd;
	ring->map_fd = fd;
	mem = mmap(NULL, r->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		return -errno;
	ring->header = mem;
	ring->slots = (struct kx_wire_record *)mem + KX_RING_HEADER_SLOTS;
	return 0;
}

/*
 * Gives the rings to the BPF programs: all at once where the kernel can, as each update waits, some ms, until no
 * program runs that may use what was there before. On failure *@cpu is whose ring it was.
 */
static int publish(int outer_fd, const struct kx_rings *r, __u32 *cpu)
{
	__u32 *keys = calloc(r->ncpus, sizeof(*keys)), count = 0;
	int *fds = calloc(r->ncpus, sizeof(*fds));
	int code = keys && fds ? 0 : -ENOMEM;

	for (__u32 i = 0; i < r->ncpus && !code; i++)
		if (r->items[i].header) {
			keys[count] = i;
			fds[count++] = r->items[i].map_fd;
		}
	if (!code && bpf_map_update_batch(outer_fd, keys, fds, &(__u32){ count }, NULL))
		for (__u32 i = 0; i < count && !code; i++) {
			*cpu = keys[i];
			code = bpf_map_update_elem(outer_fd, &keys[i], &fds[i], BPF_ANY);
		}
	free(keys);
	free(fds);
	return code;
}

int kx_rings_new(int outer_fd, int template_fd, const unsigned char *online, unsigned ncpus, uint32_t nslots,
		 struct kx_rings **out, struct kx_err *err)
{
	long page = sysconf(_SC_PAGESIZE);
	struct kx_rings *r = calloc(1, sizeof(*r));
	__u32 cpu = 0;
	int code = 0;

	if (!r || !(r->items = calloc(ncpus, sizeof(*r->items)))) {
		free(r);
		close(template_fd);
		return kx_err_set(err, -ENOMEM, "no memory for the rings of %u CPUs", ncpus);
	}
	r->ncpus = ncpus;
	r->nslots = nslots;
	r->map_size = (size_t)(KX_RING_HEADER_SLOTS + nslots) * KX_RING_SLOT_SIZE;
	r->map_size = (r->map_size + (size_t)page - 1) & ~((size_t)page - 1);
	for (unsigned i = 0; i < ncpus; i++)
		r->items[i].map_fd = -1;
	for (; cpu < ncpus && !code; cpu++)
		if (online[cpu]) {
			code = make_ring(r, cpu, template_fd);
			template_fd = -1;
		}
	if (template_fd >= 0)
		close(template_fd);
	if (code)
		cpu--;
	else
		code = publish(outer_fd, r, &cpu);
	if (code) {
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
