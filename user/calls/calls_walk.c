// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls_walk.h"

#include <errno.h>
#include <stdlib.h>

#include "base/monotonic.h"
#include "calls/calls_direct.h"
#include "calls/calls_emit.h"
#include "calls/calls_notes.h"
#include "calls/calls_stream.h"

#define BATCH 256u /* records decoded at once of one thread */
#define BATCHES 65536u /* limit on the sum over all open threads, roughly */
#define PROGRESS_STEP (1u << 20) /* bytes between two readings of the clock */
#define PROGRESS_SECONDS 0.2
/* Of open_calls' set on the fast path: there is one set, and a large one has few collisions. */
#define DIRECT_BITS 10

static void show_progress(struct kx_walk *w)
{
	uint64_t all = kx_fdr_get_info(w->c->f)->file_size;
	double now = kx_monotonic_seconds();

	w->checked_bytes = w->c->bytes_read;
	if (now - w->reported < PROGRESS_SECONDS)
		return;
	w->reported = now;
	w->progress(w->progress_ctx, w->checked_bytes < all ? w->checked_bytes : all, all);
}

/* Processes the next records of the thread: 0, 1 after the last one, or an error. */
static int read_more(struct kx_walk *w, struct kx_stream *s, bool direct)
{
	struct kx_fdr_record rec;
	uint32_t thread;
	size_t n = kx_fdr_next_calls(s->cursor, s->batch, s->batch_size, &thread);
	int r;

	if (n) {
		w->c->bytes_read += n * KX_FDR_FUNCTION_SIZE;
		return direct ? kx_stream_emit_batch(s, n) : kx_stream_take_calls(s, n);
	}
	r = kx_fdr_next(s->cursor, &rec, w->err);
	if (r < 0)
		s->reported = true;
	if (r <= 0)
		return r ? r : 1;
	w->c->bytes_read += KX_FDR_METADATA_SIZE + rec.size;
	return kx_stream_take_record(s, &rec);
}

/* Reads on until an entry of the queue is ready: 1, 0 at the thread's end, or an error. */
static int fill(struct kx_walk *w, struct kx_stream *s, bool direct)
{
	int r = 0;

	if (w->progress && w->c->bytes_read - w->checked_bytes > PROGRESS_STEP)
		show_progress(w);
	while (!kx_queue_is_ready(&s->queue)) {
		if (s->over)
			return 0;
		r = read_more(w, s, direct);
		if (r == 1)
			r = kx_stream_finish(s);
		if (r < 0)
			return s->reported ? r : kx_err_set(w->err, r, "out of memory for the "
							   "calls of the trace");
	}
	return 1;
}

static int out_of_memory(struct kx_walk *w)
{
	return kx_err_set(w->err, -ENOMEM, "out of memory for the threads of the trace");
}

/* Resets the thread to its first name and CPU. */
static int reset_thread(struct kx_walk *w, size_t i)
{
	const struct kx_thread_facts *facts = &w->c->facts[i];
	struct kx_call_thread *t = &w->c->threads[i];
	bool changed;

	kx_call_thread_clear_names(t);
	t->user = NULL;
	t->cpu = 0;
	t->depth = 0;
	t->life = 0;
	if (facts->note && kx_call_thread_rename(t, facts->note, facts->note_size, &changed))
		return out_of_memory(w);
	return 0;
}

static int walk_threads(struct kx_walk *w)
{
	struct kx_calls *c = w->c;
	bool direct = kx_stream_is_direct(c);
	struct kx_stream *s = kx_stream_new(c, BATCH, direct ? DIRECT_BITS : 0);
	int r = s ? 0 : out_of_memory(w);

	for (size_t i = 0; i < c->nthreads && !r; i++) {
		if (!c->facts[i].wanted || !c->facts[i].started)
			continue;
		if (kx_stream_open(s, i))
			r = out_of_memory(w);
		while (!r && (r = fill(w, s, direct)) > 0)
			r = kx_stream_emit_all(s);
	}
	kx_stream_free(s);
	return r;
}

/* A thread in the heap, which is ordered by the time of each thread's next entry. */
struct turn {
	uint64_t tsc;
	uint32_t thread;
	struct kx_stream *s; /* NULL: not read yet */
};

static bool is_before(const struct turn *a, const struct turn *b)
{
	return a->tsc != b->tsc ? a->tsc < b->tsc : a->thread < b->thread;
}

static void sift_down(struct turn *heap, size_t n, size_t at)
{
	struct turn moving = heap[at];

	for (size_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (!is_before(&heap[child], &moving))
			break;
		heap[at] = heap[child];
	}
	heap[at] = moving;
}

/* The earliest turn but the first. */
static const struct turn *second(const struct turn *heap, size_t n)
{
	if (n < 2)
		return NULL;
	return n > 2 && is_before(&heap[2], &heap[1]) ? &heap[2] : &heap[1];
}

static int begin_turn(struct kx_walk *w, struct turn *turn, size_t batch)
{
	turn->s = kx_stream_new(w->c, batch, 0);
	if (!turn->s || kx_stream_open(turn->s, turn->thread))
		return out_of_memory(w);
	return 0;
}

/* Emits entries of the first thread until another is earlier: 1; 0 at its end, or an error. */
static int take_turn(struct kx_walk *w, struct turn *heap, size_t n, size_t batch)
{
	const struct turn *next = second(heap, n);
	int r = heap->s ? 0 : begin_turn(w, heap, batch);

	while (!r && (kx_queue_is_ready(&heap->s->queue) || (r = fill(w, heap->s, false)) > 0)) {
		heap->tsc = heap->s->queue.items[heap->s->queue.at].tsc;
		if (next && is_before(next, heap))
			return 1;
		r = kx_stream_emit(heap->s);
	}
	return r;
}

static int walk_time(struct kx_walk *w)
{
	struct kx_calls *c = w->c;
	struct turn *heap = calloc(c->nthreads + 1, sizeof(*heap));
	size_t n = 0, batch;
	int r = heap ? 0 : out_of_memory(w);

	for (size_t i = 0; i < c->nthreads && !r; i++)
		if (c->facts[i].wanted && c->facts[i].started)
			heap[n++] = (struct turn){ c->facts[i].start, (uint32_t)i, NULL };
	batch = BATCHES / (n + 1);
	batch = batch > BATCH ? BATCH : batch < 8 ? 8 : batch;
	for (size_t i = n / 2; i--;)
		sift_down(heap, n, i);
	while (n && !r) {
		r = take_turn(w, heap, n, batch);
		if (r < 0)
			break;
		if (!r) {
			kx_stream_free(heap->s);
			heap[0] = heap[--n];
		}
		r = 0;
		if (n)
			sift_down(heap, n, 0);
	}
	while (n)
		kx_stream_free(heap[--n].s);
	free(heap);
	return r;
}

/* The last names of the threads that were left out; those that were walked have them. */
static int name_left_out(struct kx_walk *w)
{
	bool changed;

	for (size_t i = 0; i < w->c->nthreads; i++) {
		const struct kx_thread_facts *facts = &w->c->facts[i];

		if ((!facts->wanted || !facts->started) && facts->last_note != facts->note &&
		    kx_call_thread_rename(&w->c->threads[i], facts->last_note, facts->last_note_size,
					  &changed))
			return out_of_memory(w);
	}
	return 0;
}

int kx_walk_run(struct kx_walk *w, enum kx_order order)
{
	int r = 0;

	w->checked_bytes = 0;
	w->reported = w->progress ? kx_monotonic_seconds() : 0;
	for (size_t i = 0; i < w->c->nthreads && !r; i++)
		r = reset_thread(w, i);
	if (r)
		return r;
	r = order == KX_ORDER_TIME ? walk_time(w) : walk_threads(w);
	return r ? r : name_left_out(w);
}
