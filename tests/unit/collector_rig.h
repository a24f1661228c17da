// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rings in memory and a manual clock, through the collector into a file, read back. Include it after cmocka's headers. With start_target
 * there are rings of a process, this one, that records itself, too.
 */
#ifndef KX_TEST_COLLECTOR_RIG_H
#define KX_TEST_COLLECTOR_RIG_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/collector.h"
#include "trace/fdr_reader.h"
#include "trace/notes.h"

#define NCPUS  4u
#ifndef NSLOTS
#define NSLOTS 64u
#endif
#define T0     1000000ULL
#define HZ     1000000000ULL
#define SLACK  20000ULL /* 20 us: distance of the watermark from the clock */
/* Ids that no thread of this machine has. */
#define TID(n) (0x500000u + (uint32_t)(n))

static char path[] = "/tmp/kx_collector_XXXXXX";

struct rig {
	struct kx_rings rings;
	struct kx_ring items[NCPUS];
	struct kx_clock clock;
	struct kx_fdr_writer *w;
	struct kx_process_table *processes;
	struct kx_collector *c;
	struct kx_collector_counts counts;
	uint64_t now;
	uint64_t lost[KX_LOSS_REASONS], lost_other[KX_LOSS_REASONS];
	struct kx_thread_loss loss; /* of TID(1) */
	unsigned loss_calls, waits;
	unsigned finish_after; /* waits, then `unfinished` is finished */
	struct kx_wire_record *unfinished;
	uint32_t unfinished_commit;
	int fd;
	struct kx_target_rings *memory; /* with start_target */
	struct kx_rings *target;
	const uint32_t *tids; /* threads that finish() shows as "a", "b" ..., if not NULL */
	unsigned ntids;
	bool runs, wake;     /* what target_runs returns, and was last asked for */
	bool real_time;	     /* the clock is the TSC */
	uint64_t wait_ticks; /* by which rig_wait advances the clock */
};

static uint64_t rig_now(void *ctx)
{
	const struct rig *r = ctx;

	return r->real_time ? kx_tsc_read() : r->now;
}

static void rig_wait(void *ctx)
{
	struct rig *r = ctx;

	if (r->real_time)
		usleep(1000);
	r->now += r->wait_ticks;
	if (++r->waits == r->finish_after)
		r->unfinished->commit = r->unfinished_commit;
}

static void rig_losses(void *ctx, uint64_t calls[KX_LOSS_REASONS], uint64_t other[KX_LOSS_REASONS])
{
	struct rig *r = ctx;

	memcpy(calls, r->lost, sizeof(r->lost));
	memcpy(other, r->lost_other, sizeof(r->lost_other));
}

static void rig_thread_losses(void *ctx, kx_thread_loss_fn *each, void *each_ctx)
{
	struct rig *r = ctx;

	r->loss_calls++;
	each(each_ctx, TID(1), &r->loss);
}

static void rig_reduced(void *ctx, uint64_t *calls, uint64_t *too_deep)
{
	(void)ctx;
	*calls = 11;
	*too_deep = 3;
}

static bool rig_target_runs(void *ctx, bool wake)
{
	struct rig *r = ctx;

	r->wake = wake;
	return r->runs;
}

static void make_target(struct rig *r, uint64_t first)
{
	const size_t size = kx_target_rings_size(NSLOTS, NCPUS);

	r->memory = aligned_alloc(4096, size);
	assert_non_null(r->memory);
	memset(r->memory, 0, size);
	kx_target_rings_init(r->memory, NSLOTS, NCPUS, &(struct kx_thread_layout){ 0 }, UINT64_MAX / 2);
	for (unsigned cpu = 0; cpu < NCPUS; cpu++) {
		struct kx_ring_header *header = KX_TARGET_RING_AT(r->memory, cpu);

		header->head = header->tail = header->limit = first;
	}
	assert_int_equal(kx_target_rings_open(r->memory, r->memory->nslots, r->memory->ncpus, &r->target, NULL), 0);
}

/* @first: the position at which all rings begin. CPU 2 has no ring. @target: make the rings of this process, too. */
static void start_rig(struct rig *r, uint64_t first, bool target)
{
	const struct kx_fdr_options fdr = { .tsc_hz = HZ, .start_tsc = T0, .wall_sec = 5 };
	static const uint8_t traits[8];
	struct kx_collector_options o = { .traits = traits, .ntraits = 8, .start_tsc = T0 };
	struct kx_err err = { 0 };

	memset(r, 0, sizeof(*r));
	r->now = T0;
	r->wait_ticks = 1000;
	r->clock = (struct kx_clock){ .kind = KX_CLOCK_KFUNC, .tsc_hz = HZ };
	r->rings = (struct kx_rings){ .items = r->items, .ncpus = NCPUS, .nslots = NSLOTS };
	for (unsigned cpu = 0; cpu < NCPUS; cpu++) {
		struct kx_wire_record *mem = calloc(KX_RING_HEADER_SLOTS + NSLOTS, sizeof(*mem));

		assert_non_null(mem);
		r->items[cpu] = (struct kx_ring){ .map_fd = -1, .tail = first };
		if (cpu == 2) {
			free(mem);
			continue;
		}
		r->items[cpu].header = (struct kx_ring_header *)mem;
		r->items[cpu].slots = mem + KX_RING_HEADER_SLOTS;
		r->items[cpu].header->head = r->items[cpu].header->tail = first;
	}
	r->fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(r->fd >= 0);
	assert_int_equal(kx_fdr_writer_new(r->fd, &fdr, &r->w, &err), 0);
	r->processes = kx_process_table_new();
	assert_non_null(r->processes);
	o.writer = r->w;
	o.processes = r->processes;
	o.input = (struct kx_collector_input){ .rings = &r->rings,
					       .clock = &r->clock,
					       .now = rig_now,
					       .wait = rig_wait,
					       .losses = rig_losses,
					       .thread_losses = rig_thread_losses,
					       .reduced = rig_reduced,
					       .target_runs = rig_target_runs,
					       .ctx = r };
	if (target)
		make_target(r, first);
	o.input.target = (struct kx_target_input){ .rings = r->target, .memory = r->memory, .processes.pid = getpid() };
	assert_int_equal(kx_collector_new(&o, &r->c, &err), 0);
}

static inline void start_at(struct rig *r, uint64_t first)
{
	start_rig(r, first, false);
}

static inline void start(struct rig *r)
{
	start_at(r, 0);
}

static inline void stop(struct rig *r)
{
	kx_collector_free(r->c);
	kx_fdr_writer_free(r->w);
	kx_process_table_free(r->processes);
	for (unsigned cpu = 0; cpu < NCPUS; cpu++)
		free(r->items[cpu].header);
	kx_target_rings_close(r->target);
	free(r->memory);
	close(r->fd);
}

/* Like a BPF program: takes the slots, writes the payload and the record, commits last. */
static struct kx_wire_record *put_in(struct kx_ring *ring, unsigned cpu, uint8_t kind, uint64_t tsc, uint32_t tid,
				     uint32_t func, const uint64_t *words, unsigned n)
{
	uint64_t at = ring->header->head;
	struct kx_wire_record *rec = &ring->slots[at % NSLOTS];

	assert_true(at + KX_WIRE_SLOTS(n) - ring->header->tail <= NSLOTS);
	ring->header->head += KX_WIRE_SLOTS(n);
	for (unsigned i = 0; i < n; i++)
		((uint64_t *)&ring->slots[(at + 1 + i / 3) % NSLOTS])[i % 3] = words[i];
	*rec = (struct kx_wire_record){ .clock = T0 + tsc,
					.sp = 0x7000 - func * 16,
					.tid = tid,
					.func = func,
					.cpu = (uint16_t)cpu,
					.kind = kind,
					.words = (uint8_t)n,
					.commit = (uint32_t)(at + 1) };
	return rec;
}

static struct kx_wire_record *put_words(struct rig *r, unsigned cpu, uint8_t kind, uint64_t tsc,
					uint32_t tid, uint32_t func, const uint64_t *words,
					unsigned n)
{
	return put_in(&r->items[cpu], cpu, kind, tsc, tid, func, words, n);
}

static inline struct kx_wire_record *put(struct rig *r, unsigned cpu, uint8_t kind, uint64_t tsc,
				  uint32_t tid, uint32_t func)
{
	return put_words(r, cpu, kind, tsc, tid, func, NULL, 0);
}

/* Takes a slot and does not write it: a program that is preempted before it commits. */
static inline void put_unfinished(struct rig *r, unsigned cpu, uint8_t kind, uint64_t tsc, uint32_t tid,
			   uint32_t func)
{
	struct kx_ring *ring = &r->items[cpu];
	uint32_t before = ring->slots[ring->header->head % NSLOTS].commit;

	r->unfinished = put(r, cpu, kind, tsc, tid, func);
	r->unfinished_commit = r->unfinished->commit;
	r->unfinished->commit = before;
}

static inline void put_start(struct rig *r, unsigned cpu, uint64_t tsc, uint32_t tid)
{
	uint64_t words[3] = { 0, 0, 77 };

	memcpy(words, "thread", 6);
	put_words(r, cpu, KX_EVENT_THREAD_NEW, tsc, tid, tid, words, 3);
}

/* A pass with the clock at @tsc; the watermark that it leaves, since T0. */
static inline int64_t pass(struct rig *r, uint64_t tsc)
{
	struct kx_err err = { 0 };

	r->now = T0 + tsc;
	assert_int_equal(kx_collector_pass(r->c, &err), 0);
	return (int64_t)(kx_collector_watermark(r->c) - T0);
}

/* Entries and exits that have left the threads' queues for the writer. */
static inline uint64_t written(struct rig *r)
{
	kx_collector_get_counts(r->c, &r->counts);
	return r->counts.entries + r->counts.exits;
}

static void print_thread(const struct rig *r, FILE *out, const char *before, uint32_t tid)
{
	for (unsigned i = 0; i < r->ntids; i++)
		if (r->tids[i] == tid) {
			fprintf(out, "%s%c", before, 'a' + i);
			return;
		}
	fprintf(out, "%s%x", before, tid);
}

/*
 * Finishes, and compares the trace with @want: for each thread "[" and its id, then "+func@tsc/cpu"
 * for an entry with its arguments in parentheses, "-" for an exit, "!entries,exits:from-to" for a
 * loss.
 */
static inline void finish(struct rig *r, const char *want)
{
	struct kx_err err = { 0 };
	struct kx_fdr_cursor *c;
	struct kx_fdr_record rec;
	struct kx_fdr_file *f;
	char *got = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&got, &size);

	assert_int_equal(kx_collector_finish(r->c, &err), 0);
	assert_int_equal(kx_fdr_finish(r->w, 0, &err), 0);
	kx_collector_get_counts(r->c, &r->counts);
	assert_int_equal(kx_fdr_open(path, &f, &err), 0);
	for (size_t i = 0; i < kx_fdr_nthreads(f); i++) {
		bool first = true;

		assert_int_equal(kx_fdr_thread_cursor(f, i, &c), 0);
		while (kx_fdr_next(c, &rec, &err) > 0) {
			struct kx_note note;

			kx_note_read(&rec, &note);
			if (note.kind == KX_NOTE_LOSS)
				fprintf(out, " !%u,%u:%u-%u", (unsigned)note.loss.entries,
					(unsigned)note.loss.exits, (unsigned)(note.loss.from - T0),
					(unsigned)(note.loss.to - T0));
			kx_note_release(&note);
			if (rec.kind > KX_RECORD_TAIL_EXIT)
				continue;
			if (first)
				print_thread(r, out, i ? " [" : "[", (uint32_t)rec.tid);
			first = false;
			fprintf(out, " %c%u@%u/%u", rec.kind == KX_RECORD_ENTRY ? '+' : '-',
				rec.func, (unsigned)(rec.tsc - T0), rec.cpu);
			for (unsigned a = 0; rec.kind == KX_RECORD_ENTRY && a < rec.nargs; a++)
				fprintf(out, "%c%u", a ? ',' : '(', (unsigned)rec.args[a]);
			if (rec.kind == KX_RECORD_ENTRY && rec.nargs)
				fputc(')', out);
		}
		kx_fdr_cursor_free(c);
	}
	kx_fdr_close(f);
	fclose(out);
	assert_string_equal(got, want);
	free(got);
	stop(r);
}

static int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

#endif
