// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the collector takes for a record, ring to file, of its own CPU time:
 *
 *   collect_rate [MILLIONS [RING_KIB [FILE]]]
 *       fills two rings with so many million records, half a ring at a time, and after each time measures a pass; once as BPF programs fill rings,
 *       with each clock, once as a process that records itself, the same with threads that change their CPU sixteen times in between, and once into a flight
 *       recorder's store. Defaults: 20, 16384, /dev/null.
 *       Prints "WHAT NS RECORDS_PER_SECOND BYTES".
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "base/monotonic.h"
#include "collect/collector.h"

#define NCPUS 2
#define FUNCTIONS 64
#define PARTS 16
#define DEPTH 4 /* each call makes one more, up to that */

enum writer { KFUNC, KTIME, TARGET, MOVING, TARGET_STORE, WRITERS };

static const char *const names[WRITERS] = { "kfunc", "ktime", "in-process", "in-process-moving", "in-process-store" };

struct bench {
	struct kx_rings *kernel, *target;
	struct kx_target_rings *memory;
	struct kx_clock *clock;
	struct kx_fdr_writer *writer;
	struct kx_process_table *processes;
	struct kx_collector *collector;
	struct kx_flight_store *store;
	uint32_t tids[NCPUS];
	uint64_t calls[NCPUS]; /* positions in the pattern of calls */
};

static void die(const char *what, const struct kx_err *err)
{
	fprintf(stderr, "collect_rate: %s: %s\n", what, err ? err->text : "cannot be done");
	exit(1);
}

static uint64_t now(void *ctx)
{
	(void)ctx;
	return kx_tsc_read();
}

static void nothing(void *ctx)
{
	(void)ctx;
}

static void losses(void *ctx, uint64_t calls[KX_LOSS_REASONS], uint64_t other[KX_LOSS_REASONS])
{
	(void)ctx;
	memset(calls, 0, KX_LOSS_REASONS * sizeof(*calls));
	memset(other, 0, KX_LOSS_REASONS * sizeof(*other));
}

static void thread_losses(void *ctx, kx_thread_loss_fn *each, void *each_ctx)
{
	(void)ctx;
	(void)each;
	(void)each_ctx;
}

static void reduced(void *ctx, uint64_t *calls, uint64_t *too_deep)
{
	(void)ctx;
	*calls = *too_deep = 0;
}

/* Layout of tracer/target_rings.h; the other rings use the same memory layout, without its head. */
static struct kx_rings *make_rings(struct kx_target_rings *memory, uint32_t nslots)
{
	struct kx_rings *r = calloc(1, sizeof(*r));

	if (!r || !(r->items = calloc(NCPUS, sizeof(*r->items))))
		die("memory", NULL);
	r->ncpus = NCPUS;
	r->nslots = memory->nslots = nslots;
	for (unsigned cpu = 0; cpu < NCPUS; cpu++) {
		struct kx_ring_header *header = KX_TARGET_RING_AT(memory, cpu);

		r->items[cpu] = (struct kx_ring){ .map_fd = -1,
						  .header = header,
						  .slots = (struct kx_wire_record *)(header + 1) };
	}
	return r;
}

static struct kx_target_rings *make_memory(uint32_t nslots)
{
	const size_t size = sizeof(struct kx_target_rings) + NCPUS * KX_TARGET_RING_BYTES(nslots);
	struct kx_target_rings *memory = aligned_alloc(64, (size + 63) & ~63ull);

	if (!memory)
		die("memory", NULL);
	memset(memory, 0, size);
	return memory;
}

static void start(struct bench *b, enum writer w, uint32_t nslots, const char *path)
{
	static const uint8_t traits[FUNCTIONS + 1];
	static const unsigned char online[NCPUS] = { 1, 1 };
	struct kx_collector_options o = { .traits = traits, .ntraits = FUNCTIONS + 1 };
	struct kx_fdr_options fdr = { 0 };
	struct kx_err err = { 0 };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	memset(b, 0, sizeof(*b));
	if (fd < 0 || kx_clock_new(KX_CLOCK_KTIME, &b->clock, &err))
		die(path, &err);
	if (w != KTIME)
		b->clock->kind = KX_CLOCK_KFUNC;
	b->memory = make_memory(nslots);
	b->kernel = make_rings(make_memory(nslots), nslots);
	b->target = make_rings(b->memory, nslots);
	b->tids[0] = (uint32_t)getpid();
	b->tids[1] = (uint32_t)(1u << 22) - 1;
	fdr.tsc_hz = b->clock->tsc_hz;
	fdr.start_tsc = o.start_tsc = kx_tsc_read();
	if (kx_fdr_writer_new(fd, &fdr, &b->writer, &err))
		die(path, &err);
	o.writer = b->writer;
	o.processes = b->processes = kx_process_table_new();
	o.input = (struct kx_collector_input){ .rings = b->kernel,
					       .clock = b->clock,
					       .now = now,
					       .wait = nothing,
					       .losses = losses,
					       .thread_losses = thread_losses,
					       .reduced = reduced };
	if (w >= TARGET)
		o.input.target = (struct kx_target_input){ b->target, b->memory, { .pid = getpid() } };
	if (kx_collector_new(&o, &b->collector, &err))
		die("collector", &err);
	if (w == TARGET_STORE) {
		if (kx_flight_store_new(online, NCPUS, 64u << 20, &b->store, &err))
			die("store", &err);
		kx_collector_keep_in(b->collector, b->store);
	}
}

static uint64_t clock_of(const struct bench *b)
{
	struct timespec ts;

	if (b->clock->kind == KX_CLOCK_KFUNC)
		return __rdtsc();
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* @n records of one thread: DEPTH entries, then their exits. */
static void fill(struct bench *b, struct kx_rings *rings, unsigned cpu, unsigned thread, uint32_t n)
{
	struct kx_ring *ring = &rings->items[cpu];
	uint64_t head = ring->header->head;

	for (uint32_t i = 0; i < n; i++, head++) {
		const uint64_t call = b->calls[thread]++, step = call % (2ull * DEPTH);
		const uint64_t depth = step < DEPTH ? step : 2ull * DEPTH - 1 - step;

		ring->slots[head & (rings->nslots - 1)] = (struct kx_wire_record){
			.clock = clock_of(b),
			.sp = 0x7fff00000000 - depth * 64,
			.tid = b->tids[thread],
			.func = (uint32_t)((call / (2ull * DEPTH) * DEPTH + depth) % FUNCTIONS + 1),
			.cpu = (uint16_t)cpu,
			.kind = step < DEPTH ? KX_EVENT_ENTRY : KX_EVENT_EXIT,
			.commit = (uint32_t)(head + 1),
		};
	}
	__atomic_store_n(&ring->header->head, head, __ATOMIC_RELEASE);
}

static void measure(enum writer w, uint64_t records, uint32_t nslots, const char *path)
{
	struct kx_collector_counts counts;
	struct kx_err err = { 0 };
	uint64_t done = 0, measured = 0;
	double ns = 0;
	struct bench b;

	start(&b, w, nslots, path);
	while (done < records) {
		struct kx_rings *rings = w >= TARGET ? b.target : b.kernel;
		double before;

		for (unsigned part = 0; part < PARTS; part++)
			for (unsigned cpu = 0; cpu < NCPUS; cpu++)
				fill(&b, rings, cpu, w == MOVING ? (cpu + part) % NCPUS : cpu, nslots / 2 / PARTS);
		before = kx_thread_cpu_ns();
		if (kx_collector_pass(b.collector, &err) || kx_fdr_flush(b.writer, &err))
			die("pass", &err);
		/* the first ones allocate memory */
		if (done >= records / 10) {
			ns += kx_thread_cpu_ns() - before;
			measured += (uint64_t)nslots / 2 * NCPUS;
		}
		done += (uint64_t)nslots / 2 * NCPUS;
	}
	if (kx_collector_finish(b.collector, &err) || kx_fdr_finish(b.writer, 0, &err))
		die("end", &err);
	kx_collector_get_counts(b.collector, &counts);
	if (counts.events != done || counts.lost)
		die("records are missing", NULL);
	ns /= (double)measured;
	printf("%-18s %6.1f %12.0f %12llu\n", names[w], ns, 1e9 / ns, (unsigned long long)kx_fdr_writer_bytes(b.writer));
	fflush(stdout);
	kx_collector_free(b.collector);
	kx_fdr_writer_free(b.writer);
	kx_flight_store_free(b.store);
}

int main(int argc, char **argv)
{
	const uint64_t millions = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
	const uint64_t kib = argc > 2 ? strtoull(argv[2], NULL, 10) : 16384;

	for (int w = 0; w < WRITERS; w++)
		measure((enum writer)w, millions * 1000000, kx_ring_slots_for(kib << 10, NCPUS),
			argc > 3 ? argv[3] : "/dev/null");
	return 0;
}
