// SPDX-License-Identifier: BSD-2-Clause
#include "report/slices_read.h"

#include <errno.h>
#include <stdlib.h>

#include "calls/open_calls.h"
#include "trace/notes.h"

#define BATCH 256

static int compare_ids(const void *pa, const void *pb)
{
	const struct kx_slices_id *a = pa, *b = pb;

	return (a->id > b->id) - (a->id < b->id);
}

static inline uint32_t index_of(const struct kx_slices_reader *r, uint32_t id)
{
	const struct kx_slices_id key = { .id = id }, *found;

	if (id < r->ndirect)
		return r->asked[id / 64] >> id % 64 & 1 ? r->direct[id] - 1 : KX_SLICES_NONE;
	found = bsearch(&key, r->sorted, r->in->n, sizeof(key), compare_ids);
	return found ? found->index : KX_SLICES_NONE;
}

static inline double error_of(uint64_t taken, uint32_t without_pause)
{
	double more = (double)taken - without_pause;

	return KX_SLICES_PROBES_ERROR * without_pause +
	       KX_SLICES_PAUSES_ERROR * (more > 0 ? more : -more);
}

/* The whole file */

static inline int enter(const struct kx_slices_reader *r, struct kx_open_calls *open, uint32_t func,
			uint64_t tsc)
{
	if (kx_open_calls_are_full(open)) {
		int e = kx_open_calls_grow(open);

		if (e)
			return e;
	}
	kx_open_calls_push(open, func, tsc)->slot = index_of(r, func);
	return 0;
}

static inline int leave(const struct kx_slices_reader *r, struct kx_open_calls *open,
			uint32_t thread, const struct kx_call_record *record)
{
	uint32_t ended;
	enum kx_leave how =
		kx_open_calls_exit(open, record->func, record->kind == KX_RECORD_TAIL_EXIT, &ended);
	struct kx_slice_call call = { .thread = thread, .tsc = record->tsc };
	uint64_t removed = open->removed;
	struct kx_call_end end;

	for (; ended > 1; ended--)
		kx_open_calls_end(open, record->tsc, KX_LEAVE_REPAIRED);
	if (!ended)
		return 0;
	end = kx_open_calls_end(open, record->tsc, how);
	if (how == KX_LEAVE_REPAIRED)
		return 0;
	call.function = end.call->slot;
	call.depth = open->depth;
	call.caller = open->depth ? open->calls[open->depth - 1].slot : KX_SLICES_NONE;
	call.took = end.took;
	if (r->costs->n) {
		const struct kx_probe_cost *kind = kx_probe_cost_of(r->costs, record->func);

		call.own_error = error_of(end.offset, kind->offset);
		call.callers_error = error_of(open->removed - removed,
					      record->kind == KX_RECORD_TAIL_EXIT ? kind->tail_cost
										  : kind->cost);
	}
	call.self = end.took - end.call->callees;
	return r->add(r->ctx, &call);
}

static int take_calls(const struct kx_slices_reader *r, struct kx_open_calls *open, uint32_t thread,
		      struct kx_call_record *calls, size_t n)
{
	int e = 0;

	kx_open_calls_advance_batch(open, calls, n);
	for (size_t i = 0; i < n && !e; i++)
		e = calls[i].kind == KX_RECORD_ENTRY ? enter(r, open, calls[i].func, calls[i].tsc)
						     : leave(r, open, thread, &calls[i]);
	return e;
}

static int take_record(const struct kx_slices_reader *r, struct kx_open_calls *threads,
		       const struct kx_fdr_record *rec)
{
	struct kx_open_calls *open = &threads[rec->thread];
	struct kx_call_record call = { .func = rec->func, .kind = rec->kind };
	struct kx_note note;

	if (rec->kind == KX_RECORD_BUFFER)
		return 0;
	call.tsc = kx_open_calls_advance(open, rec->tsc);
	if (rec->kind == KX_RECORD_ENTRY)
		return enter(r, open, rec->func, call.tsc);
	if (rec->kind == KX_RECORD_EXIT || rec->kind == KX_RECORD_TAIL_EXIT)
		return leave(r, open, rec->thread, &call);
	if (rec->kind == KX_RECORD_CUSTOM && kx_note_read(rec, &note)) {
		if (note.kind == KX_NOTE_REPAIRED)
			open->added += note.repaired.exits;
		kx_note_release(&note);
	}
	return 0;
}

static int read_records(const struct kx_slices_reader *r, struct kx_open_calls *threads,
			struct kx_err *err)
{
	struct kx_call_record calls[BATCH];
	struct kx_fdr_cursor *c = NULL;
	struct kx_fdr_record rec;
	uint32_t thread;
	int e = kx_fdr_file_cursor(r->in->file, &c), more = 1;

	while (!e && more > 0) {
		size_t n = kx_fdr_next_calls(c, calls, BATCH, &thread);

		if (n) {
			e = take_calls(r, &threads[thread], thread, calls, n);
			continue;
		}
		more = kx_fdr_next(c, &rec, err);
		if (more > 0)
			e = take_record(r, threads, &rec);
	}
	kx_fdr_cursor_free(c);
	if (more < 0)
		return more;
	return e ? kx_err_set(err, e, "out of memory for the calls of the trace") : 0;
}

static int read_file(const struct kx_slices_reader *r, struct kx_err *err)
{
	size_t n = kx_fdr_nthreads(r->in->file);
	struct kx_open_calls *threads = calloc(n + 1, sizeof(*threads));
	int e;

	if (!threads)
		return kx_err_set(err, -ENOMEM, "out of memory for the threads of the trace");
	for (size_t i = 0; i < n && r->costs->n; i++) {
		int32_t tid;

		threads[i].costs = r->costs;
		kx_fdr_thread_ids(r->in->file, i, &threads[i].pid, &tid);
	}
	e = read_records(r, threads, err);
	for (size_t i = 0; i < n; i++)
		kx_open_calls_free(&threads[i]);
	free(threads);
	return e;
}

/* Filtered calls */

struct view_reader {
	const struct kx_slices_reader *r;
	uint64_t *newest; /* by thread: time of its newest entry or exit, ticks */
};

/* Ticks since the thread's last probe, at most UINT32_MAX. */
static uint32_t pause_of(struct view_reader *v, const struct kx_call_thread *t, uint64_t tsc)
{
	uint64_t pause = tsc > v->newest[t->index] ? tsc - v->newest[t->index] : 0;

	v->newest[t->index] = tsc;
	return pause < UINT32_MAX ? (uint32_t)pause : UINT32_MAX;
}

/* Of a call, its function's index and the pause before it are kept. */
static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct view_reader *v = ctx;
	uint64_t pause = pause_of(v, t, call->enter);

	call->user = (void *)(uintptr_t)(pause << 32 | index_of(v->r, call->func));
	return 0;
}

/* The view does not have what the probes of a call took: about the same from the pauses between the
 * calls that are left. */
static void find_errors(struct view_reader *v, const struct kx_call_thread *t,
			const struct kx_call *call, uint64_t tsc, bool tail,
			struct kx_slice_call *out)
{
	const struct kx_probe_cost *kind = kx_probe_cost_of(v->r->costs, call->func);
	uint32_t cost = tail ? kind->tail_cost : kind->cost,
		 pause = (uint32_t)((uintptr_t)call->user >> 32);
	const struct kx_probe_pauses pauses = { pause, pause, pause_of(v, t, tsc) };
	struct kx_probe_taken taken = { kind->offset, cost };

	kx_probe_taken_add_pauses(&taken, v->r->costs, kind, &pauses);
	out->own_error = error_of(taken.offset, kind->offset);
	out->callers_error = error_of(taken.cost, cost);
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct view_reader *v = ctx;
	struct kx_slice_call c = {
		.function = (uint32_t)(uintptr_t)call->user,
		.thread = t->index,
		.depth = t->depth - 1,
		.caller = t->depth > 1 ? (uint32_t)(uintptr_t)t->stack[t->depth - 2].user
				       : KX_SLICES_NONE,
		.tsc = tsc,
		.took = call->took,
		.self = call->took - call->children,
	};

	if (!kx_leave_is_measured(how))
		return 0;
	if (v->r->costs->n)
		find_errors(v, t, call, tsc, how == KX_LEAVE_TAIL, &c);
	return v->r->add(v->r->ctx, &c);
}

static int read_view(const struct kx_slices_reader *r, struct kx_err *err)
{
	struct view_reader v = {
		.r = r, .newest = calloc(kx_calls_nthreads(r->in->calls) + 1, sizeof(*v.newest))
	};
	const struct kx_call_visitor visitor = { .enter = on_enter, .leave = on_leave, .ctx = &v };
	int e;

	if (!v.newest)
		return kx_err_set(err, -ENOMEM, "out of memory for the threads of the trace");
	e = kx_calls_walk(r->in->calls, KX_ORDER_THREAD, &visitor, NULL, NULL, err);
	free(v.newest);
	return e;
}

int kx_slices_read(const struct kx_slices_reader *r, struct kx_err *err)
{
	return r->in->calls ? read_view(r, err) : read_file(r, err);
}
