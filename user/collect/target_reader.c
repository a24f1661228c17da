// SPDX-License-Identifier: BSD-2-Clause
#include "collect/target_reader.h"

#include <errno.h>
#include <stdlib.h>

#include "collect/target_threads.h"

/* Of an unfinished slot; see the header. */
#define PASSED_SECONDS	0.1
#define CROWDED_SECONDS 0.01
#define ANY_SECONDS	2
/* A pass adds at most so much to the time in which rings move: kxray itself may have been stopped in between. */
#define MOVING_SECONDS 0.25
#define EARLY_SECONDS  1
/* Slots ahead of the one that is read. */
#define PREFETCH 16
/* Records that are handed over at once: they stay in the first-level cache. */
#define BATCH 64u

struct stuck_slot {
	uint64_t position;
	uint64_t seen;	/* TSC: when it was first found unfinished */
	uint64_t moved; /* the reader's moving time then */
	uint64_t limit; /* TSC: it was taken after that */
};

struct ring_reader {
	uint64_t read; /* next position; ring->tail is behind it if slots are stuck */
	bool damaged;
	unsigned nstuck;
	struct stuck_slot stuck[KX_TARGET_STUCK]; /* in order of position */
};

/* Checked records of one thread, from one position to the next, that are not handed over yet. */
struct batch {
	uint64_t position; /* of the first */
	uint32_t n;
	unsigned cpu;
	struct kx_target_thread *thread; /* valid until another thread is looked up, which is after these are handed over */
	struct kx_wire_record records[BATCH];
};

struct kx_target_reader {
	struct kx_target_reader_options o;
	struct kx_target_threads threads;
	uint64_t oldest, newest; /* TSC that records can have; newest is read again for one that seems later */
	uint64_t now, moving;	 /* TSC of the pass; ticks in which rings have moved */
	bool ending;
	struct kx_target_reader_counts counts;
	uint64_t lost_after; /* TSC: before the oldest of the slots that were given up; UINT64_MAX: none was */
	struct batch batch;
	struct ring_reader rings[]; /* by CPU */
};

int kx_target_reader_new(const struct kx_target_reader_options *options, struct kx_target_reader **out)
{
	const struct kx_rings *rings = options->in.rings;
	const uint64_t early = EARLY_SECONDS * options->tsc_hz;
	struct kx_target_reader *r = calloc(1, sizeof(*r) + rings->ncpus * sizeof(r->rings[0]));

	if (!r)
		return -ENOMEM;
	r->o = *options;
	r->oldest = options->start_tsc > early ? options->start_tsc - early : 0;
	r->now = r->newest = options->start_tsc;
	r->lost_after = UINT64_MAX;
	kx_target_threads_init(&r->threads, &options->in.processes, options->tsc_hz);
	for (unsigned cpu = 0; cpu < rings->ncpus; cpu++)
		r->rings[cpu].read = rings->items[cpu].tail;
	*out = r;
	return 0;
}

void kx_target_reader_free(struct kx_target_reader *r)
{
	if (!r)
		return;
	kx_target_threads_free(&r->threads);
	free(r);
}

static uint64_t ticks(const struct kx_target_reader *r, double seconds)
{
	return (uint64_t)(seconds * (double)r->o.tsc_hz);
}

void kx_target_reader_begin(struct kx_target_reader *r, uint64_t now, bool moved)
{
	const uint64_t most = ticks(r, MOVING_SECONDS), passed = now - r->now;

	if (moved || r->ending)
		r->moving += passed < most ? passed : most;
	r->now = now;
	r->newest = now + r->o.slack;
	__atomic_store_n(&r->o.in.memory->heartbeat, now, __ATOMIC_RELAXED);
}

void kx_target_reader_ending(struct kx_target_reader *r)
{
	r->ending = true;
}

static void give_up(struct kx_target_reader *r, const struct stuck_slot *stuck)
{
	r->counts.given_up++;
	if (stuck->limit < r->lost_after)
		r->lost_after = stuck->limit;
}

static void give_up_all(struct kx_target_reader *r, struct ring_reader *s)
{
	for (unsigned i = 0; i < s->nstuck; i++)
		give_up(r, &s->stuck[i]);
	s->nstuck = 0;
}

uint64_t kx_target_reader_lost_after(const struct kx_target_reader *r)
{
	return r->lost_after;
}

uint64_t kx_target_reader_head(struct kx_target_reader *r, unsigned cpu)
{
	struct kx_ring *ring = &r->o.in.rings->items[cpu];
	struct ring_reader *s = &r->rings[cpu];
	uint64_t head;

	if (s->damaged)
		return s->read;
	head = kx_ring_head(ring);
	/* positions only grow, and writers stop when they are one round ahead of the tail */
	if (head - ring->tail > r->o.in.rings->nslots || head - ring->tail < s->read - ring->tail) {
		s->damaged = true;
		r->counts.damaged++;
		give_up_all(r, s);
		ring->tail = s->read; /* the writers are not told */
		return s->read;
	}
	return head;
}

/*
 * Copies the record at @position, each word once: what is checked is what is used. False while it is not finished. The last word,
 * which has the commit, is read first and again: a writer that is one round late may be overwriting the slot.
 */
static inline bool copy_record(const struct kx_wire_record *slot, uint64_t position, struct kx_wire_record *out)
{
	const uint64_t *from = (const uint64_t *)slot;
	uint64_t *to = (uint64_t *)out;
	const uint64_t last = __atomic_load_n(&from[3], __ATOMIC_ACQUIRE);

	if (last >> 32 != (uint32_t)(position + 1))
		return false;
	for (int i = 0; i < 3; i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
	to[3] = last;
	return __atomic_load_n(&from[3], __ATOMIC_RELAXED) == last;
}

/* A clock that is later than the pass may still be right: the slot was taken while other rings were read. */
static bool is_time(struct kx_target_reader *r, uint64_t clock)
{
	if (clock >= r->oldest && clock <= r->newest)
		return true;
	r->newest = r->o.now(r->o.ctx) + r->o.slack;
	return clock >= r->oldest && clock <= r->newest;
}

/* Whether a record can be true, its thread apart. */
static inline bool is_valid(struct kx_target_reader *r, const struct kx_wire_record *rec)
{
	const uint32_t func = rec->func & ~KX_FUNC_AT_INSTRUCTION;

	return KX_EVENT_IS_CALL(rec->kind) && !rec->words && func && func < r->o.ntraits &&
	       rec->cpu < r->o.in.rings->ncpus && is_time(r, rec->clock);
}

static int hand_over(struct kx_target_reader *r)
{
	struct batch *b = &r->batch;
	const uint32_t n = b->n;
	int code;

	if (!n)
		return 0;
	b->n = 0;
	code = r->o.records(r->o.ctx, b->cpu, b->records, n);
	if (code)
		return code;
	b->thread->clock = b->records[n - 1].clock;
	b->thread->position = b->position + n - 1;
	b->thread->ring = b->cpu;
	return 0;
}

/* To an empty batch, or of another thread. */
static int add_of_thread(struct kx_target_reader *r, unsigned cpu, uint64_t position, const struct kx_wire_record *rec)
{
	const struct kx_wire_record copy = *rec; /* of a place in the batch */
	struct batch *b = &r->batch;
	int code = hand_over(r);

	if (code)
		return code;
	b->thread = kx_target_threads_get(&r->threads, copy.tid, r->now);
	if (!b->thread) {
		r->counts.invalid++;
		return 0;
	}
	b->cpu = cpu;
	b->position = position;
	b->records[0] = copy;
	b->n = 1;
	return 0;
}

/*
 * Adds the record at @position, which has been copied behind the batch's last and follows it in the ring, to the batch if it can be
 * true. Then the batch has room for one more. An error is of the records before it.
 */
static inline int add_record(struct kx_target_reader *r, unsigned cpu, uint64_t position)
{
	struct batch *b = &r->batch;
	const struct kx_wire_record *rec = &b->records[b->n];

	if (!is_valid(r, rec)) {
		/* before it is counted: of an error it is still to be read, too */
		const int code = hand_over(r);

		r->counts.invalid += !code;
		return code;
	}
	if (!b->n || rec->tid != b->records[0].tid)
		return add_of_thread(r, cpu, position, rec);
	return ++b->n == BATCH ? hand_over(r) : 0;
}

/* Whether the thread of an unfinished slot has left it for good, as far as that can be known. */
static bool has_passed(struct kx_target_reader *r, unsigned cpu, const struct stuck_slot *stuck)
{
	const struct kx_rings *rings = r->o.in.rings;
	const struct kx_wire_record *slot = &rings->items[cpu].slots[stuck->position & (rings->nslots - 1)];
	const uint32_t tid = __atomic_load_n(&slot->tid, __ATOMIC_RELAXED);
	const struct kx_target_thread *thread = kx_target_threads_find(&r->threads, tid);
	pid_t process = 0;

	if (thread && (thread->clock > stuck->seen ||
		       (thread->ring == cpu && thread->position > stuck->position)))
		return true;
	return tid && tid < KX_TARGET_MAX_TID &&
	       kx_target_thread_owner(&r->o.in.processes, tid, &process) == KX_THREAD_GONE;
}

static bool is_given_up(struct kx_target_reader *r, unsigned cpu, const struct stuck_slot *stuck, uint64_t head)
{
	const uint64_t age = r->now > stuck->seen ? r->now - stuck->seen : 0, nslots = r->o.in.rings->nslots;

	if (age >= ticks(r, CROWDED_SECONDS) && head - stuck->position > nslots - nslots / 4)
		return true;
	if (r->moving - stuck->moved >= ticks(r, ANY_SECONDS))
		return true;
	return age >= ticks(r, PASSED_SECONDS) && has_passed(r, cpu, stuck);
}

static int add_alone(struct kx_target_reader *r, unsigned cpu, uint64_t position)
{
	const int code = add_record(r, cpu, position);

	return code ? code : hand_over(r);
}

/* Looks at unfinished slots again. */
static int settle(struct kx_target_reader *r, unsigned cpu, uint64_t head)
{
	const struct kx_rings *rings = r->o.in.rings;
	struct ring_reader *s = &r->rings[cpu];
	unsigned kept = 0;
	int code = 0;

	for (unsigned i = 0; i < s->nstuck; i++) {
		const struct stuck_slot *stuck = &s->stuck[i];
		const uint64_t at = stuck->position;

		if (!code && copy_record(&rings->items[cpu].slots[at & (rings->nslots - 1)], at, r->batch.records))
			code = add_alone(r, cpu, at);
		else if (!code && is_given_up(r, cpu, stuck, head))
			give_up(r, stuck);
		else
			s->stuck[kept++] = *stuck;
	}
	s->nstuck = kept;
	return code;
}

static bool add_stuck(struct kx_target_reader *r, struct ring_reader *s, const struct kx_target_pass *pass)
{
	if (s->nstuck == KX_TARGET_STUCK)
		return false;
	s->stuck[s->nstuck++] =
		(struct stuck_slot){ .position = s->read,
				     .seen = r->o.now(r->o.ctx), /* other rings may have younger records than the pass */
				     .moved = r->moving,
				     .limit = s->read >= pass->seen_head ? pass->last_now : pass->limit };
	return true;
}

/* Returns slots to the writers, up to the first that is not finished. */
static void give_back(struct kx_ring *ring, const struct ring_reader *s)
{
	ring->tail = s->nstuck ? s->stuck[0].position : s->read;
	kx_ring_release(ring);
}

/* Hands over; without memory these records are still to be read. */
static int hand_over_or_return(struct kx_target_reader *r, struct ring_reader *s)
{
	const uint64_t n = r->batch.n;
	const int code = hand_over(r);

	if (code)
		s->read -= n;
	return code;
}

static int read_on(struct kx_target_reader *r, unsigned cpu, const struct kx_target_pass *pass)
{
	const uint64_t mask = r->o.in.rings->nslots - 1, step = r->o.in.rings->nslots / 16;
	struct kx_ring *ring = &r->o.in.rings->items[cpu];
	struct ring_reader *s = &r->rings[cpu];
	struct batch *b = &r->batch;
	uint64_t most = pass->most;
	int code;

	while (s->read != pass->head) {
		const uint32_t n = b->n;

		__builtin_prefetch(&ring->slots[(s->read + PREFETCH) & mask]);
		if (copy_record(&ring->slots[s->read & mask], s->read, &b->records[n])) {
			if (!most--)
				break;
			code = add_record(r, cpu, s->read);
			if (code) {
				s->read -= n;
				return code;
			}
		} else {
			code = hand_over_or_return(r, s);
			if (code)
				return code;
			if (!add_stuck(r, s, pass))
				break;
		}
		s->read++;
		/* returns slots to the writers while the pass continues */
		if (!s->nstuck && s->read - ring->tail >= step) {
			code = hand_over_or_return(r, s);
			if (code)
				return code;
			give_back(ring, s);
		}
	}
	return hand_over_or_return(r, s);
}

int kx_target_reader_take(struct kx_target_reader *r, unsigned cpu, const struct kx_target_pass *pass,
			  uint64_t *read, uint64_t *stuck)
{
	struct ring_reader *s = &r->rings[cpu];
	int code = 0;

	if (!s->damaged) {
		code = settle(r, cpu, pass->head);
		if (!code)
			code = read_on(r, cpu, pass);
		/* most slots that were found unfinished only now are finished by now */
		if (!code)
			code = settle(r, cpu, pass->head);
		give_back(&r->o.in.rings->items[cpu], s);
	}
	*read = s->read;
	*stuck = s->nstuck ? s->stuck[0].limit : UINT64_MAX;
	return code;
}

uint64_t kx_target_reader_count_rest(struct kx_target_reader *r)
{
	const struct kx_rings *rings = r->o.in.rings;
	uint64_t calls = 0;

	for (unsigned cpu = 0; cpu < rings->ncpus; cpu++) {
		struct kx_ring *ring = &rings->items[cpu];
		struct ring_reader *s = &r->rings[cpu];
		struct kx_wire_record rec;
		uint64_t head;

		if (!ring->header)
			continue;
		head = kx_target_reader_head(r, cpu);
		give_up_all(r, s);
		for (; s->read != head; s->read++) {
			if (!copy_record(&ring->slots[s->read & (rings->nslots - 1)], s->read, &rec))
				r->counts.given_up++;
			else if (is_valid(r, &rec) && kx_target_threads_get(&r->threads, rec.tid, r->now))
				calls++;
			else
				r->counts.invalid++;
		}
		if (!s->damaged)
			give_back(ring, s);
	}
	return calls;
}

void kx_target_reader_get_counts(const struct kx_target_reader *r, struct kx_target_reader_counts *out)
{
	*out = r->counts;
}

bool kx_target_reader_has_thread(struct kx_target_reader *r, uint32_t tid)
{
	return kx_target_threads_get(&r->threads, tid, r->now) != NULL;
}
