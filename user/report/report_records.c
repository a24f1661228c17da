// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_records.h"

#include <stdlib.h>

#include "trace/notes.h"

#define BATCH  64
#define STAGES 4

/*
 * Consecutive function records of one thread. Each of the three look-ups that a record needs is
 * likely to miss the cache where there are many functions, so a batch goes through stages: each
 * prefetches what the next one needs, and other batches are worked on meanwhile. A processor has
 * only some misses under way and waits where more are asked for, so the prefetches of what ended
 * calls need are spread over the calls that are worked on.
 */
struct batch {
	struct kx_call_record calls[BATCH];
	uint32_t slots[BATCH];
	struct kx_report_stat *ended[BATCH + 1]; /* the functions of the exits, in order; NULL: it has no slot */
	size_t n, nended;
	uint32_t thread;
};

struct pipeline {
	struct batch batches[STAGES];
	unsigned newest, filled;
};

static inline int enter(struct kx_report_thread *t, uint32_t func, uint32_t slot, uint64_t tsc)
{
	struct kx_open_call *call;

	if (kx_open_calls_are_full(&t->open)) {
		int e = kx_open_calls_grow(&t->open);

		if (e)
			return e;
	}
	call = kx_open_calls_push(&t->open, func, tsc);
	call->slot = slot;
	return t->off ? kx_off_enter(t->off, t->open.depth - 1) : 0;
}

static __attribute__((noinline)) int leave_off(struct kx_report *r, struct kx_report_thread *t,
					       const struct kx_call_end *end, bool measured)
{
	const struct kx_off_call off = {
		.function = end->call->slot, .depth = t->open.depth,
		.outermost = end->call->outermost, .measured = measured, .took = end->took,
		.self = end->took - end->call->callees,
	};

	return kx_off_leave(&r->off, t->off, &off);
}

/* @stat: of the call's function. */
static inline int close_innermost(struct kx_report *r, struct kx_report_thread *t, struct kx_report_stat *stat,
				  uint64_t tsc, enum kx_leave how)
{
	const struct kx_call_end end = kx_open_calls_end(&t->open, tsc, how);

	if (t->off) {
		int e = leave_off(r, t, &end, true);

		if (e)
			return e;
	}
	return kx_report_table_add_call(&r->table, stat, end.took, end.took - end.call->callees,
					end.call->outermost);
}

/* The same without a measured end: its time is its caller's, but for what its callees took. */
static int close_unmeasured(struct kx_report *r, struct kx_report_thread *t, uint64_t tsc)
{
	const struct kx_call_end end = kx_open_calls_end(&t->open, tsc, KX_LEAVE_REPAIRED);
	int e = t->off ? leave_off(r, t, &end, false) : 0;

	return e ? e : kx_report_table_add_unmeasured(&r->table, end.call->slot);
}

/* An exit that ends several calls or none, or one that the recorder added, which is no event. */
static int leave_other(struct kx_report *r, struct kx_report_thread *t, struct kx_report_stat *stat, uint64_t tsc,
		       enum kx_leave how, uint32_t ended)
{
	bool added = how == KX_LEAVE_REPAIRED;
	int e = 0;

	if (r->counting) {
		r->totals.events -= added;
		r->totals.repaired += ended ? ended - 1 + added : 0;
		r->orphans += !ended;
	}
	for (; ended > 1 && !e; ended--)
		e = close_unmeasured(r, t, tsc);
	if (e || !ended)
		return e;
	return added ? close_unmeasured(r, t, tsc) : close_innermost(r, t, stat, tsc, how);
}

/* @stat: of the exit's function, and thereby of the call that it ends; NULL only if it ends none. */
static inline int leave(struct kx_report *r, struct kx_report_thread *t, uint32_t func, struct kx_report_stat *stat,
			uint64_t tsc, bool tail)
{
	uint32_t ended;
	enum kx_leave how = kx_open_calls_exit(&t->open, func, tail, &ended);

	if (__builtin_expect(ended != 1 || how == KX_LEAVE_REPAIRED, 0))
		return leave_other(r, t, stat, tsc, how, ended);
	return close_innermost(r, t, stat, tsc, how);
}

static int take_note(struct kx_report *r, struct kx_report_thread *t,
		     const struct kx_fdr_record *rec)
{
	struct kx_note note;
	int e = 0;

	if (!kx_note_read(rec, &note))
		return 0;
	if (note.kind == KX_NOTE_SCHED)
		e = kx_report_add_interval(r, t, t->open.depth, &note.sched);
	else if (note.kind == KX_NOTE_REPAIRED)
		t->open.added += note.repaired.exits;
	else if (note.kind == KX_NOTE_CONTINUED && r->counting)
		r->totals.events -= note.continued.calls; /* events of an earlier file */
	else if (note.kind == KX_NOTE_LOSS && r->counting && !r->has_lost)
		r->totals.lost += note.loss.entries + note.loss.exits;
	else if (note.kind == KX_NOTE_SESSION && r->counting)
		kx_report_take_session(r, note.json);
	kx_note_release(&note);
	return e;
}

static int take_record(struct kx_report *r, const struct kx_fdr_record *rec)
{
	struct kx_report_thread *t = &r->threads[rec->thread];
	uint64_t tsc;
	uint32_t slot;
	int e;

	if (rec->kind == KX_RECORD_BUFFER)
		return 0;
	if (r->counting)
		kx_report_saw_time(r, rec->tsc);
	tsc = kx_open_calls_advance(&t->open, rec->tsc);
	switch (rec->kind) {
	case KX_RECORD_ENTRY:
		r->totals.events += r->counting;
		e = kx_report_table_slot(&r->table, rec->func, &slot);
		return e ? e : enter(t, rec->func, slot, tsc);
	case KX_RECORD_EXIT:
	case KX_RECORD_TAIL_EXIT:
		r->totals.events += r->counting;
		return leave(r, t, rec->func, kx_report_stat_of(&r->table, rec->func), tsc,
			     rec->kind == KX_RECORD_TAIL_EXIT);
	case KX_RECORD_CUSTOM:
		return take_note(r, t, rec);
	default:
		return 0;
	}
}

/* Inlined like the other one, since gcc 12 drops the call of a function that only prefetches. */
static inline __attribute__((always_inline)) void prefetch_slots(const struct kx_report_table *t, const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		kx_report_table_prefetch(t, b->calls[i].func);
}

/*
 * The slots of the functions; those that are entered and have none get one. Only calls that end touch their function's
 * numbers. Whether a record is an exit cannot be predicted, so each is put down and only exits are counted.
 */
static int find_slots(struct kx_report_table *t, struct batch *b)
{
	size_t nended = 0;

	for (size_t i = 0; i < b->n; i++) {
		bool ends = b->calls[i].kind != KX_RECORD_ENTRY;
		uint32_t slot = kx_report_table_find(t, b->calls[i].func);

		if (__builtin_expect(slot == KX_REPORT_NO_SLOT, 0)) {
			int e = ends ? 0 : kx_report_table_add_function(t, b->calls[i].func, &slot);

			if (e)
				return e;
		}
		b->slots[i] = slot;
		b->ended[nended] = slot == KX_REPORT_NO_SLOT ? NULL : kx_report_stat_at(t, slot);
		nended += ends;
	}
	b->nended = nended;
	return 0;
}

/*
 * What the @i-th ended call of two batches needs: @older the place of its duration, @newer its
 * function's numbers. Beyond a batch's last one it is a call of an earlier batch, or none, which
 * does no harm.
 */
static inline __attribute__((always_inline)) void prefetch_ended(const struct kx_report_table *t,
								 const struct batch *older,
								 const struct batch *newer,
								 size_t i)
{
	__builtin_prefetch(newer->ended[i], 1);
	if (__builtin_expect(older->ended[i] != NULL, 1))
		kx_report_stat_prefetch(t, older->ended[i]);
}

/* Takes the calls of @b, whose times may be raised, and prefetches for those that come next. */
static int take_calls(struct kx_report *r, struct batch *b, const struct batch *older,
		      const struct batch *newer)
{
	struct kx_report_thread *t = &r->threads[b->thread];
	struct kx_call_record *calls = b->calls;
	size_t n = b->n, ended = 0;
	int e = 0;

	if (n && r->counting) {
		r->totals.events += n;
		kx_report_saw_time(r, calls[0].tsc);
		kx_report_saw_time(r, calls[n - 1].tsc);
	}
	if (n)
		kx_open_calls_advance_batch(&t->open, calls, n);
	for (size_t i = 0; i < n && !e; i++) {
		if (calls[i].kind == KX_RECORD_ENTRY) {
			e = enter(t, calls[i].func, b->slots[i], calls[i].tsc);
			continue;
		}
		prefetch_ended(&r->table, older, newer, ended);
		e = leave(r, t, calls[i].func, b->ended[ended++], calls[i].tsc,
			  calls[i].kind == KX_RECORD_TAIL_EXIT);
	}
	for (; ended < older->nended || ended < newer->nended; ended++)
		prefetch_ended(&r->table, older, newer, ended);
	b->n = b->nended = 0;
	return e;
}

/* The newest batch enters, and each goes to its next stage; an empty one pushes the others on. */
static int advance(struct kx_report *r, struct pipeline *p)
{
	struct batch *b[STAGES];
	int e;

	for (unsigned i = 0; i < STAGES; i++)
		b[i] = &p->batches[(p->newest - i) % STAGES];
	prefetch_slots(&r->table, b[0]);
	e = find_slots(&r->table, b[1]);
	p->newest++;
	return e ? e : take_calls(r, b[3], b[2], b[1]);
}

/* Takes all that is in the stages. */
static int drain(struct kx_report *r, struct pipeline *p)
{
	int e = 0;

	for (; p->filled && !e; p->filled--) {
		p->batches[p->newest % STAGES].n = 0;
		e = advance(r, p);
	}
	return e;
}

/* The next function records, or one other record: 1; 0 at the end; or an error, with @err if it is the file's. */
static int step(struct kx_report *r, struct kx_fdr_cursor *c, struct pipeline *p, bool *failed, struct kx_err *err)
{
	struct batch *b = &p->batches[p->newest % STAGES];
	struct kx_fdr_record rec;
	int more = 1, e;

	b->n = kx_fdr_next_calls(c, b->calls, BATCH, &b->thread);
	if (b->n) {
		p->filled = STAGES - 1;
		e = advance(r, p);
	} else {
		e = drain(r, p);
		more = e ? 0 : kx_fdr_next(c, &rec, err);
		*failed = more < 0;
		if (more > 0)
			e = take_record(r, &rec);
	}
	return e ? e : more;
}

/* Counts the calls open at the end, and removes them for the next pass. */
static void end_thread(struct kx_report *r, struct kx_report_thread *t)
{
	if (r->counting) {
		for (uint32_t i = 0; i < t->open.depth; i++)
			kx_report_stat_at(&r->table, t->open.calls[i].slot)->open++;
		r->totals.open += t->open.depth;
	}
	kx_open_calls_free(&t->open);
}

int kx_report_read_records(struct kx_report *r, struct kx_fdr_file *f, struct kx_err *err)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	struct kx_fdr_cursor *c = NULL;
	bool failed = false;
	int more = p ? kx_fdr_file_cursor(f, &c) : -ENOMEM;

	if (!more)
		more = 1;
	while (more > 0)
		more = step(r, c, p, &failed, err);
	kx_fdr_cursor_free(c);
	free(p);
	for (size_t i = 0; i < r->nthreads; i++)
		end_thread(r, &r->threads[i]);
	r->totals.threads = r->nthreads;
	if (more < 0 && !failed)
		return kx_err_set(err, more, "out of memory for the calls of the trace");
	return more;
}
