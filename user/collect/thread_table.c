// SPDX-License-Identifier: BSD-2-Clause
/* The table of threads, and the queue of each. */
#include "collect/thread_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/thread_internal.h"

#define FIRST_BUCKETS 1024u
/* Bytes for waiting events that all threads together keep allocated while none waits; between two sweeps options.idle_bytes, if more. */
#define MAX_IDLE (8u << 20)
/* Calls of kx_thread_table_sweep for one round over the table, unless it is small. */
#define SWEEP_STEPS 1024u
#define SWEEP_LEAST 64u /* buckets a call */

struct kx_thread_table *kx_thread_table_new(const struct kx_thread_options *options)
{
	struct kx_thread_table *t = calloc(1, sizeof(*t));

	if (!t || !(t->buckets = calloc(FIRST_BUCKETS, sizeof(struct kx_thread *)))) {
		free(t);
		return NULL;
	}
	t->nbuckets = FIRST_BUCKETS;
	t->o = *options;
	t->session_note = options->session_note;
	t->lost_from = UINT64_MAX;
	if (t->o.idle_bytes < MAX_IDLE)
		t->o.idle_bytes = MAX_IDLE;
	return t;
}

static void free_waiting(struct kx_thread *thread)
{
	thread->table->held -= thread->room * sizeof(*thread->events) +
			       thread->payload_room * sizeof(*thread->payload);
	free(thread->events);
	free(thread->payload);
	thread->events = NULL;
	thread->payload = NULL;
	thread->room = thread->payload_room = 0;
}

static void free_thread(struct kx_thread *thread)
{
	free_waiting(thread);
	kx_callstack_free(thread->stack);
	free(thread);
}

void kx_thread_table_free(struct kx_thread_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nbuckets; i++) {
		struct kx_thread *thread = t->buckets[i], *next;

		for (; thread; thread = next) {
			next = thread->next_in_bucket;
			free_thread(thread);
		}
	}
	kx_event_sort_free(&t->sort);
	free(t->buckets);
	free(t);
}

/* The kernel gives ids out in sequence: they are their own hash. */
static struct kx_thread **bucket(const struct kx_thread_table *t, uint32_t tid)
{
	return &t->buckets[tid & (t->nbuckets - 1)];
}

/* Without memory the chains of the buckets become longer, no more. */
static void grow(struct kx_thread_table *t)
{
	struct kx_thread **before = t->buckets, *thread, *next;
	size_t old = t->nbuckets;

	t->buckets = calloc(old * 2, sizeof(struct kx_thread *));
	if (!t->buckets) {
		t->buckets = before;
		return;
	}
	t->nbuckets = old * 2;
	for (size_t i = 0; i < old; i++) {
		for (thread = before[i]; thread; thread = next) {
			next = thread->next_in_bucket;
			thread->next_in_bucket = *bucket(t, thread->tid);
			*bucket(t, thread->tid) = thread;
		}
	}
	free(before);
}

static struct kx_thread *find(const struct kx_thread_table *t, uint32_t tid)
{
	struct kx_thread *thread = *bucket(t, tid);

	while (thread && thread->tid != tid)
		thread = thread->next_in_bucket;
	return thread;
}

bool kx_thread_table_identity(const void *table, uint32_t tid, struct kx_thread_identity *out)
{
	const struct kx_thread *thread = find(table, tid);

	if (!thread || !thread->id.name[0] || thread->exiting)
		return false;
	*out = thread->id;
	return true;
}

static struct kx_thread *add(struct kx_thread_table *t, uint32_t tid)
{
	struct kx_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	if (t->nthreads >= t->nbuckets)
		grow(t);
	thread->table = t;
	thread->tid = tid;
	thread->sorted = true;
	thread->lost_from = t->lost_from;
	thread->next_in_bucket = *bucket(t, tid);
	*bucket(t, tid) = thread;
	t->nthreads++;
	return thread;
}

static void drop(struct kx_thread_table *t, struct kx_thread *thread)
{
	struct kx_thread **at = bucket(t, thread->tid);

	while (*at != thread)
		at = &(*at)->next_in_bucket;
	*at = thread->next_in_bucket;
	t->nthreads--;
	free_thread(thread);
}

struct kx_thread *kx_thread_table_get(struct kx_thread_table *t, uint32_t tid)
{
	struct kx_thread *thread = find(t, tid);

	return thread ? thread : add(t, tid);
}

struct kx_thread *kx_thread_table_get_for_metadata(struct kx_thread_table *t, uint32_t tid)
{
	struct kx_thread *thread = find(t, tid);

	if (thread)
		return thread;
	if (!t->o.max_threads || t->nthreads < t->o.max_threads)
		return add(t, tid);
	t->unnamed++;
	return NULL;
}

static void activate(struct kx_thread *thread)
{
	thread->gone = false;
	thread->used = true;
	if (thread->active)
		return;
	thread->active = true;
	thread->next_active = thread->table->active;
	thread->table->active = thread;
}

/* Words; doubled, it has room for any payload more. */
#define FIRST_PAYLOAD 32
_Static_assert(FIRST_PAYLOAD >= KX_WIRE_MAX_WORDS, "the longest payload fits");

static int push_words(struct kx_thread *thread, const uint64_t *words, uint32_t n, uint32_t *at)
{
	if (thread->npayload + n > thread->payload_room) {
		uint32_t room = thread->payload_room ? thread->payload_room * 2 : FIRST_PAYLOAD;
		uint64_t *payload = realloc(thread->payload, room * sizeof(*payload));

		if (!payload)
			return -ENOMEM;
		thread->table->held += (room - thread->payload_room) * sizeof(*payload);
		thread->payload = payload;
		thread->payload_room = room;
	}
	*at = thread->npayload;
	memcpy(thread->payload + thread->npayload, words, n * sizeof(*words));
	thread->npayload += n;
	return 0;
}

/* Room for @n more events. */
static inline int reserve(struct kx_thread *thread, uint32_t n)
{
	uint32_t room = thread->room ? thread->room : 4;
	struct kx_event *events;

	if (thread->room - thread->nevents >= n)
		return 0;
	do
		room *= 2;
	while (room - thread->nevents < n);
	events = realloc(thread->events, room * sizeof(*events));
	if (!events)
		return -ENOMEM;
	thread->table->held += (room - thread->room) * sizeof(*events);
	thread->events = events;
	thread->room = room;
	return 0;
}

/* The event in the next slot is complete. */
static inline void append(struct kx_thread *thread)
{
	const struct kx_event *slot = &thread->events[thread->nevents];

	if (thread->nevents && slot[-1].tsc > slot->tsc)
		thread->sorted = false;
	thread->nevents++;
	activate(thread);
}

int kx_thread_push(struct kx_thread *thread, const struct kx_event *ev, const uint64_t *payload)
{
	struct kx_event *slot;

	if (reserve(thread, 1))
		return -ENOMEM;
	slot = &thread->events[thread->nevents];
	*slot = *ev;
	if (ev->words) {
		int err = push_words(thread, payload, ev->words, &slot->payload_at);

		if (err)
			return err;
	}
	if (ev->kind == KX_EVENT_THREAD_NEW || ev->kind == KX_EVENT_THREAD_NAME)
		thread->names_process |= ev->func == thread->tid;
	append(thread);
	return 0;
}

int kx_thread_push_calls(struct kx_thread *thread, const struct kx_wire_record *records, uint32_t n, uint64_t start)
{
	uint64_t last = 0;
	struct kx_event *to;
	bool sorted = true;

	if (reserve(thread, n))
		return -ENOMEM;
	to = thread->events + thread->nevents;
	if (thread->nevents)
		last = to[-1].tsc;
	for (uint32_t i = 0; i < n; i++) {
		const struct kx_wire_record *rec = &records[i];
		const uint64_t tsc = rec->clock < start ? start : rec->clock;

		sorted &= last <= tsc;
		last = tsc;
		to[i] = (struct kx_event){ .tsc = tsc,
					   .sp = rec->sp,
					   .func = rec->func & ~KX_FUNC_AT_INSTRUCTION,
					   .cpu = rec->cpu,
					   .kind = rec->kind };
	}
	thread->sorted &= sorted;
	thread->nevents += n;
	activate(thread);
	return 0;
}

static void lost_from(struct kx_thread *thread, uint64_t tsc)
{
	if (tsc < thread->lost_from)
		thread->lost_from = tsc;
	if (thread->stack)
		kx_callstack_lost_from(thread->stack, tsc);
}

int kx_thread_push_gap(struct kx_thread *thread, uint64_t entries, uint64_t exits, uint64_t from,
		       uint64_t to, uint16_t cpu)
{
	uint64_t words[3] = { from, entries, exits };
	struct kx_event ev = { .kind = KX_EVENT_LOSS, .tsc = to, .cpu = cpu, .words = 3 };

	/* the BPF side may not have noticed yet that the last gap was taken */
	if (words[0] <= thread->lost_to)
		words[0] = thread->lost_to < to ? thread->lost_to + 1 : to;
	thread->lost_to = to;
	lost_from(thread, words[0]);
	return kx_thread_push(thread, &ev, words);
}

void kx_thread_table_lost_from(struct kx_thread_table *t, uint64_t tsc)
{
	if (tsc >= t->lost_from)
		return;
	t->lost_from = tsc;
	for (size_t i = 0; i < t->nbuckets; i++)
		for (struct kx_thread *thread = t->buckets[i]; thread; thread = thread->next_in_bucket)
			lost_from(thread, tsc);
}

int kx_thread_push_loss(struct kx_thread *thread, uint64_t entries, uint64_t exits, uint64_t from,
			uint64_t to, uint16_t cpu)
{
	uint64_t more_entries = entries - thread->lost_entries;
	uint64_t more_exits = exits - thread->lost_exits;

	if (!more_entries && !more_exits)
		return 0;
	thread->lost_entries = entries;
	thread->lost_exits = exits;
	return kx_thread_push_gap(thread, more_entries, more_exits, from, to, cpu);
}

static bool is_gone(const struct kx_thread *thread)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u", thread->tid);
	return access(path, F_OK) != 0;
}

/* Its time is 0: the call stack raises it to the newest time of the thread. */
static int push_end(struct kx_thread *thread)
{
	const struct kx_event end = { .kind = KX_EVENT_THREAD_EXIT };

	return kx_thread_push(thread, &end, NULL);
}

int kx_thread_table_end_gone(struct kx_thread_table *t)
{
	for (size_t i = 0; i < t->nbuckets; i++) {
		for (struct kx_thread *thread = t->buckets[i]; thread; thread = thread->next_in_bucket) {
			int err;

			if (!thread->stack || !kx_callstack_depth(thread->stack) || !is_gone(thread))
				continue;
			err = push_end(thread);
			if (err)
				return err;
		}
	}
	return 0;
}

int kx_thread_table_sweep(struct kx_thread_table *t)
{
	size_t step = t->nbuckets / SWEEP_STEPS;

	if (step < SWEEP_LEAST)
		step = SWEEP_LEAST;
	for (size_t i = 0; i < step; i++) {
		struct kx_thread *thread = *bucket(t, (uint32_t)t->swept++);

		for (; thread; thread = thread->next_in_bucket) {
			bool gone = !thread->active && is_gone(thread);
			int err = gone && thread->gone ? push_end(thread) : 0;

			if (err)
				return err;
			thread->gone = gone;
			if (!thread->active && !thread->used && t->held > MAX_IDLE)
				free_waiting(thread);
			thread->used = false;
		}
	}
	return 0;
}

static int release_some(struct kx_thread_table *t, bool first, uint64_t watermark, size_t *released)
{
	struct kx_thread **link = &t->active;

	while (*link) {
		struct kx_thread *thread = *link;
		int err;

		if (first && !thread->names_process) {
			link = &thread->next_active;
			continue;
		}
		err = kx_thread_release(thread, watermark, released);
		if (err)
			return err;
		if (thread->nevents || thread->exiting) {
			link = &thread->next_active;
			continue;
		}
		thread->active = thread->names_process = false;
		*link = thread->next_active;
		if (!kx_thread_is_needed(thread))
			drop(t, thread);
		else if (t->held > t->o.idle_bytes)
			free_waiting(thread);
	}
	return 0;
}

int kx_thread_table_release(struct kx_thread_table *t, uint64_t watermark,
			    struct kx_callstack_counts *counts, uint64_t *migrations,
			    size_t *released)
{
	int err;

	t->counts = counts;
	t->migrations = migrations;
	/* the names of processes first: the streams of all their threads need them */
	err = release_some(t, true, watermark, released);
	return err ? err : release_some(t, false, watermark, released);
}

size_t kx_thread_table_size(const struct kx_thread_table *t)
{
	return t->nthreads;
}

uint64_t kx_thread_table_unnamed(const struct kx_thread_table *t)
{
	return t->unnamed;
}

size_t kx_thread_table_held(const struct kx_thread_table *t)
{
	return t->held;
}
