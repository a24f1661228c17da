// SPDX-License-Identifier: BSD-2-Clause
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/histogram.h"
#include "trace/notes.h"
#include "report/report_off.h"

#define BATCH 256
#define CHUNK 1024 /* functions allocated at once */
#define NO_SLOT UINT32_MAX
/* Memory for histograms: the largest of these, unless the caller says. Bytes. */
#define HISTOGRAMS_MIN (8u << 20)
#define HISTOGRAMS_OF_FUNCTION 72
#define HISTOGRAMS_OF_FILE(size) ((size) / 64 < (256u << 20) ? (size) / 64 : (256u << 20))
#define HISTOGRAMS_LEAST (128u << 10) /* the largest histogram must fit */

static const unsigned quantiles[3] = { 500, 900, 990 };

/* What a function's histogram is doing; a function is complete when it is DONE. */
enum progress { RECORDING, DEFERRED, DONE };

/* One cache line, since a trace of many functions misses the cache at each of them. */
struct stat {
	uint32_t id;
	uint32_t open : 30;
	uint32_t progress : 2;
	uint64_t count, total, self, min, max;
	union {
		struct kx_histogram histogram;
		uint16_t codes[3]; /* DONE */
	};
};

_Static_assert(sizeof(struct stat) == 64, "a function's numbers fill one cache line");

struct frame {
	uint64_t entry; /* ticks */
	uint64_t callees; /* ticks spent in them */
	uint32_t func;
	uint32_t slot : 31;
	uint32_t outermost : 1; /* no other call of this function is below it */
};

struct thread {
	struct frame *frames;
	uint32_t depth, room;
	uint32_t *outer; /* slots + 1 of the functions on the stack; open addressing */
	uint32_t outer_used;
	unsigned outer_bits; /* log2 of its size */
	uint64_t repaired; /* so many exits to come were added by kxray */
	struct kx_off_thread *off; /* NULL: it was never off the CPU, as far as is known */
};

struct place {
	uint32_t func;
	uint32_t slot; /* + 1; 0: free */
};

struct kx_report {
	struct kx_report_totals totals;
	struct stat **chunks;
	size_t nfunctions, nchunks;
	struct place *places; /* function id to slot */
	size_t nplaces;       /* a power of two */
	struct thread *threads;
	size_t nthreads;
	struct kx_histogram_pool pool;
	struct kx_off_table off;
	bool fixed_limit;
	bool first_pass;
	bool any_record;
	bool has_lost, has_orphans; /* the recorder's own final numbers are known */
	uint64_t orphans_here;
	uint32_t at_thread; /* of the file's last buffer */
	bool by_process;
	struct kx_report_processes processes;
};

static struct stat *stat_at(const struct kx_report *r, uint32_t slot)
{
	return &r->chunks[slot / CHUNK][slot % CHUNK];
}

/* Function ids */

/*
 * Where @func is or belongs. Ids are mostly dense, so they are their own hash and a table of
 * dense ids has no collisions; perturbing with the upper bits keeps chosen ones apart.
 */
static struct place *find_place(struct place *places, size_t n, uint32_t func)
{
	size_t at = func & (n - 1), perturb = func;

	while (places[at].slot && places[at].func != func) {
		perturb >>= 5;
		at = (at * 5 + perturb + 1) & (n - 1);
	}
	return &places[at];
}

static int grow_places(struct kx_report *r)
{
	size_t n = r->nplaces ? r->nplaces * 2 : 1024;
	struct place *places = calloc(n, sizeof(*places));

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < r->nplaces; i++)
		if (r->places[i].slot)
			*find_place(places, n, r->places[i].func) = r->places[i];
	free(r->places);
	r->places = places;
	r->nplaces = n;
	return 0;
}

static int new_function(struct kx_report *r, uint32_t func, uint32_t *slot)
{
	struct place *place;
	struct stat *s;

	if (r->nfunctions * 2 >= r->nplaces && grow_places(r))
		return -ENOMEM;
	if (r->nfunctions == r->nchunks * CHUNK) {
		struct stat **chunks = reallocarray(r->chunks, r->nchunks + 1, sizeof(*chunks));

		if (!chunks)
			return -ENOMEM;
		r->chunks = chunks;
		chunks[r->nchunks] = aligned_alloc(64, CHUNK * sizeof(struct stat));
		if (!chunks[r->nchunks])
			return -ENOMEM;
		r->nchunks++;
	}
	if (r->nfunctions >= INT32_MAX)
		return -ENOMEM;
	*slot = (uint32_t)r->nfunctions++;
	s = stat_at(r, *slot);
	*s = (struct stat){ .id = func, .min = UINT64_MAX };
	place = find_place(r->places, r->nplaces, func);
	place->func = func;
	place->slot = *slot + 1;
	if (!r->fixed_limit && r->nfunctions * HISTOGRAMS_OF_FUNCTION > r->pool.limit)
		r->pool.limit = r->nfunctions * HISTOGRAMS_OF_FUNCTION;
	return 0;
}

static inline int slot_of(struct kx_report *r, uint32_t func, uint32_t *slot)
{
	const struct place *place = find_place(r->places, r->nplaces, func);

	if (place->slot) {
		*slot = place->slot - 1;
		return 0;
	}
	return new_function(r, func, slot);
}

/* The set of functions on a thread's stack */

static uint32_t outer_place(const struct thread *t, uint32_t key)
{
	return key * 0x9e3779b1u >> (32 - t->outer_bits);
}

/* Whether it was not in the set before; room must be there. */
static inline bool outer_add(struct thread *t, uint32_t slot)
{
	uint32_t key = slot + 1, at = outer_place(t, key), mask = (1u << t->outer_bits) - 1;

	while (t->outer[at]) {
		if (t->outer[at] == key)
			return false;
		at = (at + 1) & mask;
	}
	t->outer[at] = key;
	t->outer_used++;
	return true;
}

/*
 * Functions leave the set in the reverse order of their coming, so nothing that was put
 * beyond a taken place is still there when that place becomes free.
 */
static inline void outer_remove(struct thread *t, uint32_t slot)
{
	uint32_t key = slot + 1, at = outer_place(t, key), mask = (1u << t->outer_bits) - 1;

	while (t->outer[at] != key)
		at = (at + 1) & mask;
	t->outer[at] = 0;
	t->outer_used--;
}

static bool outer_has(const struct thread *t, uint32_t slot)
{
	uint32_t key = slot + 1, mask = (1u << t->outer_bits) - 1;

	if (!t->outer)
		return false;
	for (uint32_t at = outer_place(t, key); t->outer[at]; at = (at + 1) & mask)
		if (t->outer[at] == key)
			return true;
	return false;
}

static bool outer_is_full(const struct thread *t)
{
	return t->outer_used * 4ul >= 1ul << t->outer_bits;
}

/* A larger set, filled in the order of the stack. */
static int outer_grow(struct thread *t)
{
	unsigned bits = t->outer ? t->outer_bits + 1 : 6;
	uint32_t *outer;

	if (bits > 31)
		return -ENOMEM;
	outer = calloc(1ul << bits, sizeof(*outer));
	if (!outer)
		return -ENOMEM;
	free(t->outer);
	t->outer = outer;
	t->outer_bits = bits;
	t->outer_used = 0;
	for (uint32_t i = 0; i < t->depth; i++)
		if (t->frames[i].outermost)
			outer_add(t, t->frames[i].slot);
	return 0;
}

/* Calls */

static int grow_thread(struct thread *t)
{
	if (t->depth == t->room) {
		uint32_t room = t->room ? t->room * 2 : 32;
		struct frame *frames;

		if (room < t->room)
			return -ENOMEM;
		frames = reallocarray(t->frames, room, sizeof(*frames));
		if (!frames)
			return -ENOMEM;
		t->frames = frames;
		t->room = room;
	}
	return !t->outer || outer_is_full(t) ? outer_grow(t) : 0;
}

static inline int enter(struct thread *t, uint32_t func, uint32_t slot, uint64_t tsc)
{
	struct frame *f;

	if (t->depth == t->room || outer_is_full(t)) {
		int r = grow_thread(t);

		if (r)
			return r;
	}
	f = &t->frames[t->depth++];
	f->entry = tsc;
	f->callees = 0;
	f->func = func;
	f->slot = slot & 0x7fffffff;
	f->outermost = outer_add(t, slot);
	return t->off ? kx_off_enter(t->off, t->depth - 1) : 0;
}

/* The innermost call, which took so long, is about to end. */
static __attribute__((noinline)) int close_off(struct kx_report *r, struct thread *t,
					       const struct frame *f, uint64_t took)
{
	const struct kx_off_call call = {
		.function = f->slot, .depth = t->depth, .outermost = f->outermost, .took = took,
		.self = took > f->callees ? took - f->callees : 0,
	};

	return kx_off_leave(&r->off, t->off, &call);
}

static inline int close_innermost(struct kx_report *r, struct thread *t, uint64_t tsc)
{
	const struct frame *f = &t->frames[--t->depth];
	struct stat *s = stat_at(r, f->slot);
	/* A clock that went back is the trace's fault; such a call took no time. */
	uint64_t took = tsc > f->entry ? tsc - f->entry : 0;
	int e;

	if (t->off) {
		e = close_off(r, t, f, took);
		if (e)
			return e;
	}
	if (t->depth)
		t->frames[t->depth - 1].callees += took;
	if (r->first_pass) {
		s->count++;
		s->self += took > f->callees ? took - f->callees : 0;
		if (f->outermost)
			s->total += took;
		if (took < s->min)
			s->min = took;
		if (took > s->max)
			s->max = took;
	}
	if (f->outermost)
		outer_remove(t, f->slot);
	if (s->progress != RECORDING)
		return 0;
	e = kx_histogram_add(&s->histogram, took, &r->pool);
	if (e != -ENOSPC)
		return e;
	/* Memory for histograms is used up: this one waits for another pass. */
	kx_histogram_free(&s->histogram, &r->pool);
	s->progress = DEFERRED;
	return 0;
}

/* Gives back the memory of a thread with no open call: there may be very many that have ended. */
static void rest_thread(struct thread *t)
{
	if (t->depth)
		return;
	free(t->frames);
	free(t->outer);
	t->frames = NULL;
	t->outer = NULL;
	t->room = t->outer_bits = t->outer_used = 0;
}

/* An exit that does not belong to the innermost call. */
static int leave_other(struct kx_report *r, struct thread *t, uint32_t func, uint64_t tsc)
{
	const struct place *place = find_place(r->places, r->nplaces, func);
	int e = 0;

	if (!place->slot || !outer_has(t, place->slot - 1)) {
		r->orphans_here += r->first_pass;
		return 0;
	}
	while (!e && t->frames[t->depth - 1].func != func) {
		r->totals.repaired += r->first_pass;
		e = close_innermost(r, t, tsc);
	}
	return e ? e : close_innermost(r, t, tsc);
}

static inline int leave(struct kx_report *r, struct thread *t, uint32_t func, uint64_t tsc)
{
	if (t->repaired) {
		t->repaired--;
		if (r->first_pass) {
			r->totals.repaired++;
			r->totals.events--;
		}
	}
	if (!t->depth || t->frames[t->depth - 1].func != func)
		return leave_other(r, t, func, tsc);
	return close_innermost(r, t, tsc);
}

static void saw_time(struct kx_report *r, uint64_t tsc)
{
	if (!r->any_record || tsc < r->totals.first_tsc)
		r->totals.first_tsc = tsc;
	if (!r->any_record || tsc > r->totals.last_tsc)
		r->totals.last_tsc = tsc;
	r->any_record = true;
}

/* Notes of the recorder */

static void take_session(struct kx_report *r, const json_t *session)
{
	if (!r->has_lost && json_is_integer(json_object_get(session, "lost"))) {
		r->totals.lost = kx_note_number(session, "lost");
		r->has_lost = true;
	}
	if (!r->has_orphans && json_is_integer(json_object_get(session, "orphans"))) {
		r->totals.orphans = kx_note_number(session, "orphans");
		r->has_orphans = true;
	}
}

/* A time off the CPU; all of them are in the first pass's numbers. */
static int take_interval(struct kx_report *r, struct thread *t, const struct kx_sched_interval *i)
{
	r->totals.has_sched = true;
	if (!r->first_pass)
		return 0;
	if (!t->off)
		t->off = kx_off_thread_new(t->depth);
	if (!t->off)
		return -ENOMEM;
	kx_off_add(t->off, i);
	return 0;
}

static int take_note(struct kx_report *r, struct thread *t, const struct kx_fdr_record *rec)
{
	struct kx_sched_interval i;
	const uint8_t *body;
	uint32_t size;
	json_t *note;

	body = kx_note_body(rec, "sched", &size);
	if (body)
		return kx_sched_parse(body, size, rec->tsc, &i) ? take_interval(r, t, &i) : 0;
	note = kx_note_json(rec, "repaired");
	if (note) {
		t->repaired += kx_note_number(note, "exits");
	} else if (r->first_pass && (note = kx_note_json(rec, "loss"))) {
		if (!r->has_lost)
			r->totals.lost += kx_note_number(note, "entries") +
					  kx_note_number(note, "exits");
	} else if (r->first_pass && (note = kx_note_json(rec, "session"))) {
		take_session(r, note);
	}
	json_decref(note);
	return 0;
}

/* Passes */

static int take_record(struct kx_report *r, const struct kx_fdr_record *rec)
{
	struct thread *t = &r->threads[rec->thread];
	uint32_t slot;
	int e;

	if (r->first_pass && rec->kind != KX_RECORD_BUFFER)
		saw_time(r, rec->tsc);
	switch (rec->kind) {
	case KX_RECORD_ENTRY:
		r->totals.events += r->first_pass;
		e = slot_of(r, rec->func, &slot);
		return e ? e : enter(t, rec->func, slot, rec->tsc);
	case KX_RECORD_EXIT:
	case KX_RECORD_TAIL_EXIT:
		r->totals.events += r->first_pass;
		return leave(r, t, rec->func, rec->tsc);
	case KX_RECORD_CUSTOM:
		return take_note(r, t, rec);
	default:
		return 0;
	}
}

static int take_calls(struct kx_report *r, uint32_t thread, const struct kx_call_record *calls,
		      size_t n)
{
	struct thread *t = &r->threads[thread];
	uint32_t slots[BATCH];
	int e = 0;

	/* All look-ups first: the cache misses of many functions overlap then. */
	for (size_t i = 0; i < n && !e; i++) {
		const struct place *place = find_place(r->places, r->nplaces, calls[i].func);

		slots[i] = place->slot - 1;
		if (!place->slot && calls[i].kind == KX_RECORD_ENTRY)
			e = new_function(r, calls[i].func, &slots[i]);
		if (slots[i] != NO_SLOT)
			__builtin_prefetch(stat_at(r, slots[i]), 1);
	}
	for (size_t i = 0; i < n && !e; i++)
		if (slots[i] != NO_SLOT)
			__builtin_prefetch(stat_at(r, slots[i])->histogram.data, 1);
	if (r->first_pass) {
		r->totals.events += n;
		saw_time(r, calls[0].tsc);
		saw_time(r, calls[n - 1].tsc);
	}
	for (size_t i = 0; i < n && !e; i++) {
		if (calls[i].kind == KX_RECORD_ENTRY)
			e = enter(t, calls[i].func, slots[i], calls[i].tsc);
		else
			e = leave(r, t, calls[i].func, calls[i].tsc);
	}
	return e;
}

static int run_pass(struct kx_report *r, struct kx_fdr_file *f, struct kx_err *err)
{
	struct kx_call_record calls[BATCH];
	struct kx_fdr_cursor *c = NULL;
	struct kx_fdr_record rec;
	uint32_t thread;
	int e = kx_fdr_file_cursor(f, &c), more = 1;

	while (!e && more > 0) {
		size_t n = kx_fdr_next_calls(c, calls, BATCH, &thread);

		if (n) {
			e = take_calls(r, thread, calls, n);
			continue;
		}
		more = kx_fdr_next(c, &rec, err);
		if (more > 0)
			e = take_record(r, &rec);
	}
	kx_fdr_cursor_free(c);
	if (more < 0)
		return more;
	return e ? kx_err_set(err, e, "out of memory for the calls of the trace") : 0;
}

/* The same of a filtered trace: what the call view tells is balanced already. */

static int told_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct kx_report *r = ctx;

	(void)tsc;
	return r->by_process && r->first_pass ? kx_report_process_thread(&r->processes, t) : 0;
}

static int told_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct kx_report *r = ctx;
	uint32_t slot, func = call->func;
	int e = 0;

	if (r->by_process)
		e = kx_report_process_function(&r->processes, t, call->func, &func);
	if (!e)
		e = slot_of(r, func, &slot);
	if (r->first_pass) {
		r->totals.events++;
		saw_time(r, call->enter);
	}
	return e ? e : enter(&r->threads[t->index], func, slot, call->enter);
}

static int told_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		      enum kx_leave how)
{
	struct kx_report *r = ctx;

	(void)call;
	if (r->first_pass) {
		saw_time(r, tsc);
		r->totals.events += how == KX_LEAVE_EXIT || how == KX_LEAVE_TAIL;
		r->totals.repaired += how == KX_LEAVE_REPAIRED;
	}
	/* Calls that stay open stay on the stack, all of a thread together. */
	return how == KX_LEAVE_OPEN ? 0 : close_innermost(r, &r->threads[t->index], tsc);
}

static int told_sched(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *i)
{
	struct kx_report *r = ctx;

	return take_interval(r, &r->threads[t->index], i);
}

static int told_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct kx_report *r = ctx;

	(void)tsc;
	rest_thread(&r->threads[t->index]);
	r->totals.threads += r->first_pass;
	return 0;
}

static int run_filtered_pass(struct kx_report *r, struct kx_calls *calls, struct kx_err *err)
{
	const struct kx_call_visitor visitor = {
		.thread = told_thread, .enter = told_enter, .leave = told_leave,
		.sched = told_sched, .end = told_end, .ctx = r,
	};
	int e = kx_calls_walk(calls, KX_ORDER_THREAD, &visitor, NULL, NULL, err);

	if (e == -ENOMEM)
		kx_err_set(err, e, "out of memory for the calls of the trace");
	if (!r->has_lost)
		r->totals.lost = kx_calls_get_totals(calls)->lost;
	if (!r->has_orphans)
		r->totals.orphans = kx_calls_get_totals(calls)->orphans;
	return e;
}

/* The calls still open at the end: counted once, then forgotten for the next pass. */
static void end_threads(struct kx_report *r)
{
	for (size_t i = 0; i < r->nthreads; i++) {
		struct thread *t = &r->threads[i];

		for (uint32_t k = 0; r->first_pass && k < t->depth; k++)
			stat_at(r, t->frames[k].slot)->open++;
		r->totals.open += r->first_pass ? t->depth : 0;
		free(t->frames);
		free(t->outer);
		kx_off_thread_free(t->off);
		memset(t, 0, sizeof(*t));
	}
}

/*
 * Percentiles of what was recorded in this pass; then room for those deferred, as far as
 * memory goes. 1 if another pass is needed, else 0 or -ENOMEM.
 */
static int end_histograms(struct kx_report *r)
{
	int more = 0, e;

	for (size_t i = 0; i < r->nfunctions; i++) {
		struct stat *s = stat_at(r, (uint32_t)i);
		uint16_t codes[3] = { KX_HISTOGRAM_MIN, KX_HISTOGRAM_MIN, KX_HISTOGRAM_MIN };

		if (r->first_pass) {
			r->totals.calls += s->count;
			r->totals.self += s->self;
			r->totals.self_off += kx_off_get(&r->off, (uint32_t)i).self_off;
		}
		if (s->progress != RECORDING)
			continue;
		e = kx_histogram_quantiles(&s->histogram, quantiles, 3, codes);
		if (e && e != -ENODATA)
			return e;
		kx_histogram_free(&s->histogram, &r->pool);
		memcpy(s->codes, codes, sizeof(codes));
		s->progress = DONE;
	}
	for (size_t i = 0; i < r->nfunctions; i++) {
		struct stat *s = stat_at(r, (uint32_t)i);

		if (s->progress != DEFERRED)
			continue;
		more = 1;
		e = kx_histogram_reserve(&s->histogram, s->count, &r->pool);
		if (e == -ENOMEM)
			return e;
		if (!e)
			s->progress = RECORDING;
	}
	return more;
}

static size_t histogram_limit(const struct kx_report_options *options, uint64_t file_size)
{
	if (options->histogram_bytes)
		return options->histogram_bytes > HISTOGRAMS_LEAST ? options->histogram_bytes :
								     HISTOGRAMS_LEAST;
	return HISTOGRAMS_OF_FILE(file_size) > HISTOGRAMS_MIN ? HISTOGRAMS_OF_FILE(file_size) :
								HISTOGRAMS_MIN;
}

int kx_report_new(struct kx_fdr_file *f, const struct kx_report_options *options,
		  struct kx_report **out, struct kx_err *err)
{
	struct kx_report *r = calloc(1, sizeof(*r));
	int e = -ENOMEM;

	if (!r)
		return kx_err_set(err, e, "out of memory for the report");
	r->nthreads = kx_fdr_nthreads(f);
	r->totals.threads = options->calls ? 0 : r->nthreads;
	r->threads = calloc(r->nthreads + 1, sizeof(*r->threads));
	if (!r->threads || grow_places(r)) {
		kx_report_free(r);
		return kx_err_set(err, e, "out of memory for the report");
	}
	r->fixed_limit = options->histogram_bytes;
	r->pool.limit = histogram_limit(options, kx_fdr_get_info(f)->file_size);
	r->totals.has_sched = json_is_true(json_object_get(options->session, "sched")) ||
			      (options->calls && kx_calls_have_sched(options->calls));
	if (!options->calls || options->whole)
		take_session(r, options->session);
	r->by_process = options->by_process;
	r->first_pass = true;
	do {
		e = options->calls ? run_filtered_pass(r, options->calls, err) :
				     run_pass(r, f, err);
		if (e)
			break;
		end_threads(r);
		e = end_histograms(r);
		if (e < 0)
			kx_err_set(err, e, "out of memory for the percentiles");
		r->first_pass = false;
		r->totals.passes++;
	} while (e > 0);
	if (e) {
		kx_report_free(r);
		return e;
	}
	r->totals.orphans += r->orphans_here;
	if (options->whole) {
		r->totals.first_tsc = kx_calls_get_totals(options->calls)->first_tsc;
		r->totals.last_tsc = kx_calls_get_totals(options->calls)->last_tsc;
	}
	*out = r;
	return 0;
}

void kx_report_free(struct kx_report *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nfunctions; i++) {
		struct stat *s = stat_at(r, (uint32_t)i);

		if (s->progress != DONE)
			kx_histogram_free(&s->histogram, &r->pool);
	}
	for (size_t i = 0; i < r->nchunks; i++)
		free(r->chunks[i]);
	for (size_t i = 0; r->threads && i < r->nthreads; i++) {
		free(r->threads[i].frames);
		free(r->threads[i].outer);
		kx_off_thread_free(r->threads[i].off);
	}
	kx_off_table_free(&r->off);
	kx_report_processes_free(&r->processes);
	free(r->threads);
	free(r->chunks);
	free(r->places);
	free(r);
}

const struct kx_report_totals *kx_report_get_totals(const struct kx_report *r)
{
	return &r->totals;
}

size_t kx_report_nfunctions(const struct kx_report *r)
{
	return r->nfunctions;
}

void kx_report_prefetch(const struct kx_report *r, size_t index)
{
	__builtin_prefetch(stat_at(r, (uint32_t)index));
}

void kx_report_get_function(const struct kx_report *r, size_t index, struct kx_report_function *out)
{
	const struct stat *s = stat_at(r, (uint32_t)index);
	const struct kx_off_times times = kx_off_get(&r->off, (uint32_t)index);
	uint64_t min = s->count ? s->min : 0;

	*out = (struct kx_report_function){
		.id = s->id, .count = s->count, .open = s->open, .total = s->total,
		.self = s->self, .min = min, .max = s->max,
		.off = times.off, .wait = times.wait, .self_off = times.self_off,
		.p50 = kx_histogram_value(s->codes[0], min, s->max),
		.p90 = kx_histogram_value(s->codes[1], min, s->max),
		.p99 = kx_histogram_value(s->codes[2], min, s->max),
	};
	if (r->by_process) {
		out->id = r->processes.pair[s->id].b;
		out->process = r->processes.pair[s->id].a;
	}
}

size_t kx_report_nprocesses(const struct kx_report *r)
{
	return r->processes.index.count;
}

const struct kx_report_process *kx_report_get_process(const struct kx_report *r, size_t index)
{
	return &r->processes.items[index];
}
