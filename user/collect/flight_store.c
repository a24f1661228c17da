// SPDX-License-Identifier: BSD-2-Clause
/*
 * A CPU's memory is a ring of blocks. Records are in a block in order of arrival, in units of 32
 * bytes: the record itself, its clock converted to TSC, then four words of payload in each further
 * unit. No record crosses the end of a block. The order of arrival is not exactly the order of
 * time, so every block has the times of its oldest and its newest record.
 */
#include "collect/flight_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/kernel_files.h"

#define UNIT	  sizeof(struct kx_wire_record)
#define MIN_BLOCK 4096u
#define MAX_BLOCK (256u << 10)
#define DEFAULT_BYTES (64ull << 20)
/* Twice the threads in the BPF map of losses. */
#define MAX_LOSSES    32768u
#define PAYLOAD_UNITS(words) (((words) + 3u) / 4)

struct block {
	uint64_t oldest, newest; /* TSC */
	uint32_t units;		 /* filled */
	uint32_t records;
};

struct cpu_store {
	struct kx_wire_record *units; /* NULL: no memory for this CPU */
	struct block *blocks;
	uint32_t current;
};

/* Losses of one thread that are already in gaps. */
struct loss {
	uint32_t tid; /* 0: free */
	uint64_t entries, exits;
};

struct kx_flight_store {
	struct cpu_store *cpus;
	unsigned ncpus, nonline;
	uint32_t block_units, nblocks;
	uint64_t bytes_per_cpu;
	uint64_t complete_from;
	uint64_t kept, overwritten;
	struct loss losses[MAX_LOSSES]; /* a hash by tid */
};

uint64_t kx_flight_store_default_bytes(unsigned ncpus)
{
	uint64_t memory = kx_meminfo_bytes("MemTotal"), share = memory / 16 / (ncpus ? ncpus : 1);

	if (!memory || share > DEFAULT_BYTES)
		return DEFAULT_BYTES;
	return share > KX_FLIGHT_MIN_BYTES ? share : KX_FLIGHT_MIN_BYTES;
}

static size_t cpu_size(const struct kx_flight_store *s)
{
	return (size_t)s->nblocks * s->block_units * UNIT;
}

/* The current block is partly empty: one block more than @bytes need keeps @bytes at all times. */
static void divide(struct kx_flight_store *s, uint64_t bytes)
{
	uint64_t block = bytes / 16 / MIN_BLOCK * MIN_BLOCK;

	if (block < MIN_BLOCK)
		block = MIN_BLOCK;
	if (block > MAX_BLOCK)
		block = MAX_BLOCK;
	s->block_units = (uint32_t)(block / UNIT);
	s->nblocks = (uint32_t)((bytes + block - 1) / block) + 1;
	s->bytes_per_cpu = bytes;
}

static int take_memory(struct kx_flight_store *s, struct cpu_store *c)
{
	void *mem = mmap(NULL, cpu_size(s), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (mem == MAP_FAILED)
		return -errno;
	/* a forked child writes the dump: small pages keep each copy-on-write fault short */
	madvise(mem, cpu_size(s), MADV_NOHUGEPAGE);
	c->units = mem;
	c->blocks = calloc(s->nblocks, sizeof(*c->blocks));
	return c->blocks ? 0 : -ENOMEM;
}

int kx_flight_store_new(const unsigned char *online, unsigned ncpus, uint64_t bytes,
			struct kx_flight_store **out, struct kx_err *err)
{
	struct kx_flight_store *s = calloc(1, sizeof(*s));
	uint64_t total, available = kx_meminfo_bytes("MemAvailable");
	int code = 0;

	if (!s || !(s->cpus = calloc(ncpus, sizeof(*s->cpus)))) {
		free(s);
		return kx_err_set(err, -ENOMEM, "no memory for the flight recorder");
	}
	s->ncpus = ncpus;
	for (unsigned i = 0; i < ncpus; i++)
		s->nonline += online[i] != 0;
	divide(s, bytes < KX_FLIGHT_MIN_BYTES ? KX_FLIGHT_MIN_BYTES : bytes);
	total = (uint64_t)cpu_size(s) * s->nonline;
	/* while a dump is written, copy-on-write may double the memory */
	if (available && total > available / 2)
		code = -ENOMEM;
	for (unsigned i = 0; i < ncpus && !code; i++)
		if (online[i])
			code = take_memory(s, &s->cpus[i]);
	if (code) {
		kx_err_set(err, code,
			   "the flight recorder cannot have %llu MiB on each of %u CPUs: %llu MiB of "
			   "memory are free, and it may need twice its size while it writes; take a "
			   "smaller --flight-recorder",
			   (unsigned long long)(bytes >> 20), s->nonline,
			   (unsigned long long)(available >> 20));
		kx_flight_store_free(s);
		return code;
	}
	*out = s;
	return 0;
}

void kx_flight_store_free(struct kx_flight_store *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->ncpus; i++) {
		if (s->cpus[i].units)
			munmap(s->cpus[i].units, cpu_size(s));
		free(s->cpus[i].blocks);
	}
	free(s->cpus);
	free(s);
}

static struct block *next_block(struct kx_flight_store *s, struct cpu_store *c)
{
	struct block *b;

	c->current = (c->current + 1) % s->nblocks;
	b = &c->blocks[c->current];
	if (b->units && b->newest >= s->complete_from)
		s->complete_from = b->newest + 1;
	s->overwritten += b->records;
	s->kept -= b->records;
	*b = (struct block){ 0 };
	return b;
}

void kx_flight_store_put(struct kx_flight_store *s, unsigned cpu, const struct kx_wire_record *rec,
			 uint64_t tsc, const uint64_t *payload)
{
	uint32_t need = 1 + PAYLOAD_UNITS(rec->words);
	struct kx_wire_record *to;
	struct cpu_store *c;
	struct block *b;

	if (cpu >= s->ncpus || !s->cpus[cpu].units) {
		s->overwritten++;
		if (tsc >= s->complete_from)
			s->complete_from = tsc + 1;
		return;
	}
	c = &s->cpus[cpu];
	b = &c->blocks[c->current];
	if (b->units + need > s->block_units)
		b = next_block(s, c);
	to = c->units + (size_t)c->current * s->block_units + b->units;
	*to = *rec;
	to->clock = tsc;
	if (rec->words)
		memcpy(to + 1, payload, rec->words * sizeof(*payload));
	if (!b->units || tsc < b->oldest)
		b->oldest = tsc;
	if (tsc > b->newest)
		b->newest = tsc;
	b->units += need;
	b->records++;
	s->kept++;
}

static struct loss *loss_of(struct kx_flight_store *s, uint32_t tid)
{
	uint32_t at = tid * 2654435761u % MAX_LOSSES, n;

	for (n = 0; n < MAX_LOSSES; n++, at = (at + 1) % MAX_LOSSES)
		if (s->losses[at].tid == tid || !s->losses[at].tid)
			break;
	if (n == MAX_LOSSES)
		return NULL;
	s->losses[at].tid = tid;
	return &s->losses[at];
}

void kx_flight_store_put_loss(struct kx_flight_store *s, uint32_t tid, uint64_t entries,
			      uint64_t exits, uint64_t from, uint64_t to, uint16_t cpu)
{
	struct kx_wire_record rec = { .tid = tid, .cpu = cpu, .kind = KX_EVENT_LOSS, .words = 3 };
	struct loss *loss = loss_of(s, tid);
	uint64_t words[3] = { from, 0, 0 };

	if (!loss)
		return; /* still in the totals */
	words[1] = entries - loss->entries;
	words[2] = exits - loss->exits;
	loss->entries = entries;
	loss->exits = exits;
	if (words[1] || words[2])
		kx_flight_store_put(s, cpu, &rec, to, words);
}

void kx_flight_store_stats(const struct kx_flight_store *s, struct kx_flight_stats *out)
{
	*out = (struct kx_flight_stats){ .kept = s->kept,
					 .overwritten = s->overwritten,
					 .bytes = (uint64_t)cpu_size(s) * s->nonline,
					 .bytes_per_cpu = s->bytes_per_cpu };
}

uint64_t kx_flight_store_complete_from(const struct kx_flight_store *s)
{
	return s->complete_from;
}

/* Position of the replay in the blocks of one CPU. */
struct cursor {
	uint64_t *rest_from; /* by `done`: TSC of the oldest record in the remaining blocks */
	uint32_t done;	     /* blocks replayed */
};

/* Index of the @n-th block in order of age; 0 is the oldest. */
static uint32_t block_at(const struct kx_flight_store *s, const struct cpu_store *c, uint32_t n)
{
	return (c->current + 1 + n) % s->nblocks;
}

static int start_cursor(const struct kx_flight_store *s, const struct cpu_store *c,
			struct cursor *cursor)
{
	uint64_t oldest = UINT64_MAX;

	cursor->rest_from = malloc((s->nblocks + 1) * sizeof(*cursor->rest_from));
	if (!cursor->rest_from)
		return -ENOMEM;
	for (uint32_t n = s->nblocks + 1; n-- > 0;) {
		if (n < s->nblocks) {
			const struct block *b = &c->blocks[block_at(s, c, n)];

			if (b->units && b->oldest < oldest)
				oldest = b->oldest;
		}
		cursor->rest_from[n] = oldest;
	}
	return 0;
}

static int replay_block(const struct kx_flight_store *s, const struct cpu_store *c, uint32_t index,
			uint64_t from, uint64_t to, const struct kx_flight_reader *reader)
{
	const struct kx_wire_record *first = c->units + (size_t)index * s->block_units, *rec;
	const struct block *b = &c->blocks[index];
	int code = 0;

	if (!b->units || b->newest < from || b->oldest >= to)
		return 0;
	for (rec = first; rec < first + b->units && !code; rec += 1 + PAYLOAD_UNITS(rec->words))
		if (rec->clock >= from && rec->clock < to)
			code = reader->record(reader->ctx, rec, (const uint64_t *)(rec + 1));
	return code;
}

/* The CPU with the oldest remaining record, *@limit its TSC; NULL if none remains. */
static struct cursor *oldest_rest(struct cursor *cursors, unsigned ncpus, uint64_t *limit)
{
	struct cursor *oldest = NULL;

	*limit = UINT64_MAX;
	for (unsigned i = 0; i < ncpus; i++) {
		struct cursor *c = &cursors[i];

		if (c->rest_from && c->rest_from[c->done] < *limit) {
			*limit = c->rest_from[c->done];
			oldest = c;
		}
	}
	return oldest;
}

int kx_flight_store_replay(const struct kx_flight_store *s, uint64_t from, uint64_t to,
			   const struct kx_flight_reader *reader)
{
	struct cursor *cursors = calloc(s->ncpus, sizeof(*cursors)), *next;
	uint64_t limit;
	int code = cursors ? 0 : -ENOMEM;

	for (unsigned i = 0; i < s->ncpus && !code; i++)
		if (s->cpus[i].units)
			code = start_cursor(s, &s->cpus[i], &cursors[i]);
	while (!code && (next = oldest_rest(cursors, s->ncpus, &limit)) && limit < to) {
		const struct cpu_store *c = &s->cpus[next - cursors];

		code = replay_block(s, c, block_at(s, c, next->done), from, to, reader);
		next->done++;
		oldest_rest(cursors, s->ncpus, &limit);
		if (!code)
			code = reader->watermark(reader->ctx, limit < to ? limit : to);
	}
	for (unsigned i = 0; cursors && i < s->ncpus; i++)
		free(cursors[i].rest_from);
	free(cursors);
	return code;
}
