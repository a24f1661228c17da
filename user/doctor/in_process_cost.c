// SPDX-License-Identifier: BSD-2-Clause
#include "doctor/in_process_cost.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>

#include "attach/recorder_code.h"
#include "base/monotonic.h"
#include "bpf/wire.h"
#include "tracer/cpus.h"
#include "tracer/target_rings.h"

#define RUNS 40
#define CALLS 1000
#define SLOTS 2048
/* Of the thread's id in glibc's thread control block (attach/thread_layout.c); it is only read. */
#define TID_OFFSET 0x2d0

static struct kx_thread_layout own_layout(void)
{
	return (struct kx_thread_layout){ .tid = TID_OFFSET,
					  .cpu = __rseq_size && __rseq_offset > 0 ? (uint32_t)__rseq_offset + offsetof(struct rseq, cpu_id) : 0 };
}

static void *get(size_t size, struct kx_err *err)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED)
		return p;
	kx_err_set(err, -errno, "no memory for rings: %s", strerror(errno));
	return NULL;
}

static void empty(struct kx_rings *rings)
{
	for (unsigned cpu = 0; cpu < rings->ncpus; cpu++) {
		rings->items[cpu].tail = kx_ring_head(&rings->items[cpu]);
		kx_ring_release(&rings->items[cpu]);
	}
}

static int measure(kx_recorder_fn *record, struct kx_target_rings *memory, unsigned ncpus, double *ns, struct kx_err *err)
{
	struct kx_patch_head head = { .magic = KX_PATCH_MAGIC, .enabled = 1, .rings = (uintptr_t)memory };
	struct kx_rings *rings;
	int code = kx_target_rings_open(memory, SLOTS, ncpus, &rings, err);

	*ns = 1e18;
	for (int run = 0; run < RUNS && !code; run++) {
		const uint64_t before = kx_rings_heads(rings);
		const double from = kx_thread_cpu_ns();
		double each;

		for (int i = 0; i < CALLS; i++)
			record((uint32_t)KX_EVENT_ENTRY << 28 | 1, (uintptr_t)&head, &head);
		each = (kx_thread_cpu_ns() - from) / CALLS;
		*ns = each < *ns ? each : *ns;
		if (kx_rings_heads(rings) - before != CALLS)
			code = kx_err_set(err, -EIO, "%d calls of the recorder left %llu records", CALLS,
					  (unsigned long long)(kx_rings_heads(rings) - before));
		empty(rings);
	}
	kx_target_rings_close(rings);
	return code;
}

int kx_in_process_cost(double *ns, struct kx_err *err)
{
	size_t size, entry, rings_size;
	const uint8_t *code_bytes = kx_recorder_code(kx_recorder_tcb_by_here(), &size, &entry);
	const struct kx_thread_layout layout = own_layout();
	struct kx_target_rings *memory;
	struct kx_cpus cpus;
	uint8_t *copy;
	int code = kx_cpus_read(&cpus, err);

	if (code)
		return code;
	rings_size = kx_target_rings_size(SLOTS, cpus.n);
	memory = get(rings_size, err);
	copy = get(size, err);
	if (memory && copy) {
		kx_target_rings_init(memory, SLOTS, cpus.n, &layout, UINT64_MAX);
		memcpy(copy, code_bytes, size);
		code = mprotect(copy, size, PROT_READ | PROT_EXEC) ?
			       kx_err_set(err, -errno, "memory may not become code here: %s", strerror(errno)) :
			       measure((kx_recorder_fn *)(uintptr_t)(copy + entry), memory, cpus.n, ns, err);
	} else {
		code = -ENOMEM;
	}
	if (memory)
		munmap(memory, rings_size);
	if (copy)
		munmap(copy, size);
	kx_cpus_free(&cpus);
	return code;
}
