// SPDX-License-Identifier: BSD-2-Clause
/* The call view: the first pass over the file, and the walk over its threads. */
#include "calls/calls.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calls/calls_internal.h"
#include "trace/notes.h"

#define BATCH 256u /* records decoded at once of one thread */
#define BATCHES 65536u /* and of all that are open at a time, roughly */
#define PROGRESS_STEP (1u << 20) /* bytes between two looks at the clock */
#define PROGRESS_NS 200000000

/* Names */

/* Replaces a name that the thread owns; *changed is set, never cleared. */
static int set_text(const char **text, const json_t *json, bool *changed)
{
	const char *value = json_string_value(json);
	char *copy;

	if (!value || !strcmp(value, *text))
		return 0;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	if (**text)
		free((void *)(uintptr_t)*text);
	*text = "";
	if (*copy)
		*text = copy;
	else
		free(copy);
	*changed = true;
	return 0;
}

int kx_note_name(struct kx_call_thread *t, const uint8_t *body, uint32_t size, bool *changed)
{
	json_t *note = json_loadb((const char *)body, size, JSON_DISABLE_EOF_CHECK, NULL);
	int r;

	*changed = false;
	r = set_text(&t->name, json_object_get(note, "name"), changed);
	if (!r)
		r = set_text(&t->process, json_object_get(note, "process"), changed);
	t->ns_pid = (int32_t)json_integer_value(json_object_get(note, "ns_pid"));
	t->ns_tid = (int32_t)json_integer_value(json_object_get(note, "ns_tid"));
	json_decref(note);
	return r;
}

void kx_call_process_title(const struct kx_call_thread *t, char *out, size_t size)
{
	if (t->ns_pid)
		snprintf(out, size, "%s%s(pid %d in its namespace)", t->process,
			 *t->process ? " " : "", (int)t->ns_pid);
	else
		snprintf(out, size, "%s", t->process);
}

/* The first pass */

static void saw_time(struct kx_calls *c, bool *any, uint64_t tsc)
{
	if (!*any || tsc < c->totals.first_tsc)
		c->totals.first_tsc = tsc;
	if (!*any || tsc > c->totals.last_tsc)
		c->totals.last_tsc = tsc;
	*any = true;
}

static void saw_start(struct kx_calls *c, uint32_t thread, uint64_t tsc)
{
	struct kx_thread_facts *facts = &c->facts[thread];

	if (!facts->started)
		facts->start = tsc;
	facts->started = true;
}

static int look_at(struct kx_calls *c, const struct kx_fdr_record *rec)
{
	struct kx_sched_interval i;
	const uint8_t *body;
	uint32_t size;
	bool changed;

	switch (rec->kind) {
	case KX_RECORD_ENTRY:
	case KX_RECORD_EXIT:
	case KX_RECORD_TAIL_EXIT:
	case KX_RECORD_TYPED:
		saw_start(c, rec->thread, rec->tsc);
		return 0;
	case KX_RECORD_CUSTOM:
		body = kx_note_body(rec, "sched", &size);
		if (body) {
			c->has_sched = true;
			if (kx_sched_parse(body, size, rec->tsc, &i))
				saw_start(c, rec->thread, i.from);
			return 0;
		}
		if (!kx_note_is_ours(rec) || kx_note_body(rec, "loss", &size) ||
		    kx_note_body(rec, "sample", &size))
			saw_start(c, rec->thread, rec->tsc);
		body = kx_note_body(rec, "session", &size);
		if (body && !c->session) {
			c->session = body;
			c->session_size = size;
		}
		body = kx_note_body(rec, "thread", &size);
		if (!body)
			return 0;
		if (!c->facts[rec->thread].note) {
			c->facts[rec->thread].note = body;
			c->facts[rec->thread].note_size = size;
		}
		return kx_note_name(&c->threads[rec->thread], body, size, &changed);
	default:
		return 0;
	}
}

static int first_pass(struct kx_calls *c, struct kx_err *err)
{
	struct kx_fdr_cursor *cursor = NULL;
	struct kx_fdr_record rec;
	uint64_t first, last;
	uint32_t thread;
	bool any = false;
	int r = kx_fdr_file_cursor(c->f, &cursor), more = 1;

	while (!r && more > 0) {
		if (kx_fdr_skip_calls(cursor, &first, &last, &thread)) {
			saw_time(c, &any, first);
			saw_time(c, &any, last);
			saw_start(c, thread, first);
			continue;
		}
		more = kx_fdr_next(cursor, &rec, err);
		if (more <= 0)
			break;
		if (rec.kind != KX_RECORD_BUFFER)
			saw_time(c, &any, rec.tsc);
		r = look_at(c, &rec);
	}
	kx_fdr_cursor_free(cursor);
	if (more < 0)
		return more;
	return r ? kx_err_set(err, r, "out of memory for the threads of the trace") : 0;
}

static bool is_one_of(int32_t id, const int32_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == id)
			return true;
	return !n;
}

static int init_threads(struct kx_calls *c, const struct kx_call_filter *filter)
{
	size_t n = kx_fdr_nthreads(c->f);

	c->threads = calloc(n + 1, sizeof(*c->threads));
	c->facts = calloc(n + 1, sizeof(*c->facts));
	if (!c->threads || !c->facts)
		return -ENOMEM;
	c->nthreads = n;
	for (size_t i = 0; i < n; i++) {
		struct kx_call_thread *t = &c->threads[i];

		t->index = (uint32_t)i;
		t->name = t->process = "";
		kx_fdr_thread_ids(c->f, i, &t->pid, &t->tid);
		c->facts[i].wanted = is_one_of(t->pid, filter->pids, filter->npids) &&
				     is_one_of(t->tid, filter->tids, filter->ntids);
	}
	return 0;
}

int kx_calls_new(struct kx_fdr_file *f, struct kx_symbolizer *names,
		 const struct kx_call_filter *filter, struct kx_calls **out, struct kx_err *err)
{
	static const struct kx_call_filter nothing;
	struct kx_calls *c = calloc(1, sizeof(*c));
	int r;

	if (!filter)
		filter = &nothing;
	if (!c)
		return kx_err_set(err, -ENOMEM, "out of memory for the calls of the trace");
	c->f = f;
	c->names = names;
	c->has_callers = names->has_map &&
			 json_is_true(json_object_get(names->map.session, "callers"));
	c->has_sched = names->has_map && json_is_true(json_object_get(names->map.session, "sched"));
	r = kx_address_space_init(&c->space, c->has_callers ? &names->map : NULL);
	if (!r)
		r = init_threads(c, filter);
	if (r)
		kx_err_set(err, r, "out of memory for the threads of the trace");
	if (!r)
		r = kx_filter_init(c, filter, err);
	if (!r)
		r = first_pass(c, err);
	if (r) {
		kx_calls_free(c);
		return r;
	}
	kx_filter_bounds(c, filter);
	*out = c;
	return 0;
}

static void forget_names(struct kx_call_thread *t)
{
	if (t->name && *t->name)
		free((void *)(uintptr_t)t->name);
	if (t->process && *t->process)
		free((void *)(uintptr_t)t->process);
	t->name = t->process = "";
}

void kx_calls_free(struct kx_calls *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nthreads; i++)
		forget_names(&c->threads[i]);
	kx_filter_free(&c->filter);
	kx_address_space_free(&c->space);
	free(c->threads);
	free(c->facts);
	free(c);
}

bool kx_calls_have_sched(const struct kx_calls *c)
{
	return c->has_sched;
}

size_t kx_calls_nthreads(const struct kx_calls *c)
{
	return c->nthreads;
}

const struct kx_call_thread *kx_calls_thread(const struct kx_calls *c, size_t index)
{
	return &c->threads[index];
}

const struct kx_calls_totals *kx_calls_get_totals(const struct kx_calls *c)
{
	return &c->totals;
}

const char *kx_calls_session(const struct kx_calls *c, size_t *size)
{
	*size = c->session_size;
	return (const char *)c->session;
}

/* The walk */

struct walk {
	struct kx_calls *c;
	void (*progress)(void *ctx, uint64_t done, uint64_t all);
	void *progress_ctx;
	uint64_t looked; /* bytes at which the clock was looked at last */
	uint64_t told_ns;
	struct kx_err *err;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void show_progress(struct walk *w)
{
	uint64_t all = kx_fdr_get_info(w->c->f)->file_size, now;

	w->looked = w->c->bytes_read;
	now = now_ns();
	if (now - w->told_ns < PROGRESS_NS)
		return;
	w->told_ns = now;
	w->progress(w->progress_ctx, w->looked < all ? w->looked : all, all);
}

static int fill(struct walk *w, struct kx_stream *s)
{
	if (w->progress && w->c->bytes_read - w->looked > PROGRESS_STEP)
		show_progress(w);
	return kx_stream_fill(s, w->err);
}

static int out_of_memory(struct walk *w)
{
	return kx_err_set(w->err, -ENOMEM, "out of memory for the threads of the trace");
}

/* A thread as it was when it began: with its first name. */
static int reset_thread(struct walk *w, size_t i)
{
	const struct kx_thread_facts *facts = &w->c->facts[i];
	struct kx_call_thread *t = &w->c->threads[i];
	bool changed;

	forget_names(t);
	t->user = NULL;
	t->cpu = 0;
	t->depth = 0;
	t->life = 0;
	if (facts->note && kx_note_name(t, facts->note, facts->note_size, &changed))
		return out_of_memory(w);
	return 0;
}

static int walk_threads(struct walk *w)
{
	struct kx_calls *c = w->c;
	struct kx_stream *s = kx_stream_new(c, BATCH, true);
	int r = s ? 0 : out_of_memory(w);

	for (size_t i = 0; i < c->nthreads && !r; i++) {
		if (!c->facts[i].wanted || !c->facts[i].started)
			continue;
		if (kx_stream_open(s, i))
			r = out_of_memory(w);
		while (!r && (r = fill(w, s)) > 0)
			for (r = 0; kx_stream_ready(s) && !r;)
				r = kx_stream_emit(s);
	}
	kx_stream_free(s);
	return r;
}

/* A thread that waits for its turn: in the heap the earliest is first. */
struct turn {
	uint64_t tsc;
	uint32_t thread;
	struct kx_stream *s; /* NULL: not begun */
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

static int begin_turn(struct walk *w, struct turn *turn, size_t batch)
{
	turn->s = kx_stream_new(w->c, batch, false);
	if (!turn->s || kx_stream_open(turn->s, turn->thread))
		return out_of_memory(w);
	return 0;
}

/* Tells what the first thread of the heap has, until another's turn has come: 1; 0: it is over. */
static int take_turn(struct walk *w, struct turn *heap, size_t n, size_t batch)
{
	const struct turn *next = second(heap, n);
	int r = heap->s ? 0 : begin_turn(w, heap, batch);

	while (!r && (kx_stream_ready(heap->s) || (r = fill(w, heap->s)) > 0)) {
		heap->tsc = kx_stream_time(heap->s);
		if (next && is_before(next, heap))
			return 1;
		r = kx_stream_emit(heap->s);
	}
	return r;
}

static int walk_time(struct walk *w)
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

int kx_calls_walk(struct kx_calls *c, enum kx_order order, const struct kx_call_visitor *v,
		  void (*progress)(void *ctx, uint64_t done, uint64_t all), void *progress_ctx,
		  struct kx_err *err)
{
	struct walk w = {
		.c = c, .progress = progress, .progress_ctx = progress_ctx, .err = err,
		.told_ns = progress ? now_ns() : 0,
	};
	uint64_t size = kx_fdr_get_info(c->f)->file_size;
	int r = 0;

	c->visitor = v;
	c->bytes_read = 0;
	c->totals = (struct kx_calls_totals){
		.first_tsc = c->totals.first_tsc, .last_tsc = c->totals.last_tsc,
	};
	for (size_t i = 0; i < c->nthreads && !r; i++)
		r = reset_thread(&w, i);
	if (!r)
		r = order == KX_ORDER_TIME ? walk_time(&w) : walk_threads(&w);
	c->visitor = NULL;
	if (!r && progress)
		progress(progress_ctx, size, size);
	return r;
}
