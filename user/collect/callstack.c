// SPDX-License-Identifier: BSD-2-Clause
/*
 * Frames are in an array, oldest first. The stack grows down, so a caller has a
 * higher stack pointer than its callee. Adjacent frames whose stack pointers fall
 * by less than NEAR form a run: a contiguous part of one stack. A larger jump is
 * another stack (signal stack, coroutine) and starts a new run. Inside a run stack
 * pointers never rise, so it is searched by bisection, and two comparisons decide
 * whether a new stack pointer belongs to it.
 */
#include "collect/callstack.h"

#include <errno.h>
#include <stdlib.h>

#include "bpf/wire.h"

#define NEAR (1ULL << 20) /* farther apart, in bytes, means another stack */
/* Limit of the kernel: nested return probes of one thread. */
#define MAX_RETURN_PROBES 64
/*
 * A program that leaves its signal handlers by siglongjmp accumulates runs that no
 * stack pointer proves dead. At this many, drop_runs closes some of them.
 */
#define MAX_RUNS 64
#define SPAN_SP (1ULL << 62) /* of a span that is in no call: above all stacks */
#define MAX_BLIND_SEARCH 65536 /* frames to search if only the function can be compared */

struct frame {
	uint64_t sp; /* 0: unknown */
	uint64_t tsc;
	uint32_t func : 28;
	uint32_t hijacked : 1; /* a return probe will report its exit */
	uint32_t stale : 1;    /* it has ended, and no exit is its own */
	uint32_t run;          /* index of the first frame of its run */
};

struct kx_callstack {
	struct frame *frames;
	uint32_t depth, capacity;
	uint32_t nruns;
	uint32_t hijacked; /* frames with that bit */
	uint64_t newest;   /* TSC */
	uint64_t lost_from; /* TSC of the first loss; UINT64_MAX: none */
	const uint8_t *traits;
	uint32_t ntraits;
};

/* The arguments of kx_callstack_feed, for its steps. */
struct feed {
	struct kx_callstack *s;
	const struct kx_event *ev;
	const struct kx_callstack_sink *sink;
	struct kx_callstack_counts *counts;
};

struct kx_callstack *kx_callstack_new(const uint8_t *traits, uint32_t ntraits)
{
	struct kx_callstack *s = calloc(1, sizeof(*s));

	if (s)
		*s = (struct kx_callstack){ .lost_from = UINT64_MAX, .traits = traits, .ntraits = ntraits };
	return s;
}

void kx_callstack_free(struct kx_callstack *s)
{
	if (!s)
		return;
	free(s->frames);
	free(s);
}

uint32_t kx_callstack_depth(const struct kx_callstack *s)
{
	return s->depth;
}

uint32_t kx_callstack_top(const struct kx_callstack *s)
{
	return s->depth ? s->frames[s->depth - 1].func : 0;
}

int kx_callstack_each(const struct kx_callstack *s, int (*each)(void *ctx, uint64_t tsc, uint32_t func),
		      void *ctx)
{
	int ret = 0;

	for (uint32_t i = 0; i < s->depth && !ret; i++)
		ret = each(ctx, s->frames[i].tsc, s->frames[i].func);
	return ret;
}

uint64_t kx_callstack_top_tsc(const struct kx_callstack *s)
{
	return s->depth ? s->frames[s->depth - 1].tsc : 0;
}

uint64_t kx_callstack_oldest(const struct kx_callstack *s)
{
	return s->depth ? s->frames[0].tsc : UINT64_MAX;
}

void kx_callstack_lost_from(struct kx_callstack *s, uint64_t tsc)
{
	if (tsc < s->lost_from)
		s->lost_from = tsc;
}

static uint8_t traits_of(const struct kx_callstack *s, uint32_t func)
{
	return func < s->ntraits ? s->traits[func] : 0;
}

static void pop(struct kx_callstack *s)
{
	const struct frame *f = &s->frames[--s->depth];

	s->hijacked -= f->hijacked;
	if (f->run == s->depth)
		s->nruns--;
}

static int push(struct kx_callstack *s, const struct kx_event *ev)
{
	struct frame *f;
	bool same_run = false;

	if (s->depth == s->capacity) {
		uint32_t n = s->capacity ? s->capacity * 2 : 16;

		if (n <= s->capacity)
			return -ENOMEM;
		f = realloc(s->frames, (size_t)n * sizeof(*f));
		if (!f)
			return -ENOMEM;
		s->frames = f;
		s->capacity = n;
	}
	f = &s->frames[s->depth];
	if (s->depth) {
		uint64_t below = f[-1].sp;

		same_run = below && ev->sp ? below >= ev->sp && below - ev->sp <= NEAR : below == ev->sp;
	}
	f->sp = ev->sp;
	f->tsc = ev->tsc;
	f->func = ev->func & 0x0fffffff;
	f->stale = 0;
	f->run = same_run ? f[-1].run : s->depth;
	f->hijacked = (traits_of(s, ev->func) & (KX_FUNC_RETURN | KX_FUNC_NO_EXITS)) ==
			      KX_FUNC_RETURN &&
		      s->hijacked < MAX_RETURN_PROBES;
	s->hijacked += f->hijacked;
	s->nruns += !same_run;
	s->depth++;
	return 0;
}

/* Index after the last frame of [first, last] whose stack pointer is at least @sp. */
static uint32_t bisect(const struct kx_callstack *s, uint32_t first, uint32_t last, uint64_t sp)
{
	uint32_t lo = first, hi = last + 1;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->frames[mid].sp >= sp)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Index of the topmost of the first @end frames that the exit @ev can belong to, plus one; 0 if there is none. */
static uint32_t find_frame(const struct kx_callstack *s, uint32_t end, const struct kx_event *ev)
{
	uint32_t seen = 0;

	while (end) {
		uint32_t first = s->frames[end - 1].run, i;
		uint64_t high = s->frames[first].sp;

		i = ev->sp && high ? bisect(s, first, end - 1, ev->sp) : end;
		for (; i > first; i--) {
			const struct frame *f = &s->frames[i - 1];

			if (ev->sp && f->sp && f->sp != ev->sp)
				break;
			if (f->func == ev->func && !f->stale)
				return i;
			if (++seen >= MAX_BLIND_SEARCH)
				return 0;
		}
		end = first;
	}
	return 0;
}

/*
 * @ended was entered on another run at the stack pointer of older frames of its function, which have ended before, perhaps in another
 * thread: its exit, which may come, must not be taken for theirs.
 */
static void mark_older(struct kx_callstack *s, uint32_t run, const struct kx_event *ended)
{
	uint32_t found;

	while (ended->sp && (found = find_frame(s, run, ended)))
		s->frames[found - 1].stale = 1;
}

/* Closes the top frame with an exit that no probe reported, at the time of the event being fed. */
static int repair_top(struct feed *in)
{
	struct kx_callstack *s = in->s;
	const struct frame *top = &s->frames[s->depth - 1];
	struct kx_event ev = {
		.tsc = in->ev->tsc,
		.sp = top->sp,
		.func = top->func,
		.cpu = in->ev->cpu,
		.kind = KX_EVENT_EXIT,
	};
	const uint32_t run = top->run;
	int ret = in->sink->exit(in->sink->ctx, &ev, true);

	if (ret < 0)
		return ret;
	in->counts->repaired++;
	pop(s);
	mark_older(s, run, &ev);
	return 0;
}

/* Closes all frames from @depth on. */
static int repair_above(struct feed *in, uint32_t depth)
{
	const struct kx_callstack_sink *sink = in->sink;

	if (in->s->depth > depth && sink->repairs) {
		int ret = sink->repairs(sink->ctx, in->ev, in->s->depth - depth);

		if (ret < 0)
			return ret;
	}
	while (in->s->depth > depth) {
		int ret = repair_top(in);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static bool run_may_hold(const struct kx_callstack *s, uint32_t first, uint32_t last, uint64_t sp)
{
	uint64_t high = s->frames[first].sp, low = s->frames[last].sp;

	return high && sp && sp <= high + NEAR && (sp >= low || low - sp <= NEAR);
}

/* Too many runs: closes those above the oldest that fits the new stack pointer, else above the
 * first. */
static int drop_runs(struct feed *in)
{
	const struct kx_callstack *s = in->s;
	uint32_t keep = 0, end = s->depth;

	while (end) {
		uint32_t first = s->frames[end - 1].run;

		if (run_may_hold(s, first, end - 1, in->ev->sp) || (first == 0 && !keep))
			keep = end;
		end = first;
	}
	return repair_above(in, keep);
}

static bool in_kernel(uint64_t sp)
{
	return sp && sp < KX_KERNEL_SP_END;
}

/* Closes the frames that must have ended because a function is entered at stack pointer ev->sp. */
static int repair_dead(struct feed *in)
{
	const struct kx_callstack *s = in->s;
	uint64_t sp = in->ev->sp;
	uint32_t alive = s->depth;
	bool chain_broken = false; /* a frame at sp has ended that cannot leave by a tail jump */

	for (; alive; alive--) {
		const struct frame *top = &s->frames[alive - 1];
		uint8_t traits = traits_of(s, top->func);

		if (!sp || !top->sp) {
			/* Nothing to compare: close only calls that never report an exit. */
			if (!(traits & KX_FUNC_NO_EXITS))
				break;
		} else if (in_kernel(top->sp) && !in_kernel(sp)) {
			continue; /* the thread has returned to user space */
		} else if (top->sp > sp || sp > s->frames[top->run].sp + NEAR) {
			break;
		} else if (top->sp == sp) {
			/*
			 * Two open calls have the same stack pointer only if the first left by
			 * a tail jump and its return probe reports when the last of the chain
			 * returns. An exit probe at the jump itself would have reported before
			 * this entry.
			 */
			if (!chain_broken && top->hijacked && (traits & KX_FUNC_TAIL_CALLS) &&
			    top->func != in->ev->func)
				break;
			if (!(traits & KX_FUNC_TAIL_CALLS))
				chain_broken = true;
		}
	}
	return repair_above(in, alive);
}

/* A marker that is an instant: both events at once, and it is never open. */
static int emit_instant(struct feed *in)
{
	struct kx_event end = *in->ev;
	int ret = in->sink->entry(in->sink->ctx, in->ev);

	if (ret < 0)
		return ret;
	in->counts->entries++;
	end.kind = KX_EVENT_EXIT;
	end.words = 0;
	ret = in->sink->exit(in->sink->ctx, &end, false);
	if (ret == 0)
		in->counts->exits++;
	return ret;
}

/*
 * A span is not on the stack: what its thread calls and returns from does not end it, only its second marker, or the end of the
 * call in which it began, since calls in a trace are nested.
 */
static int push_span(struct kx_callstack *s, const struct kx_event *ev)
{
	struct kx_event placed = *ev;

	placed.sp = SPAN_SP;
	if (s->depth && s->frames[s->depth - 1].sp)
		placed.sp = s->frames[s->depth - 1].sp - 1;
	return push(s, &placed);
}

static int feed_entry(struct feed *in)
{
	struct kx_callstack *s = in->s;
	int ret;

	ret = repair_dead(in);
	if (ret == 0 && s->nruns >= MAX_RUNS) {
		ret = drop_runs(in);
		if (ret == 0)
			ret = repair_dead(in);
	}
	if (ret < 0)
		return ret;
	if (in->ev->is_instant)
		return emit_instant(in);
	ret = in->ev->is_marker ? push_span(s, in->ev) : push(s, in->ev);
	if (ret < 0)
		return ret;
	ret = in->sink->entry(in->sink->ctx, in->ev);
	if (ret < 0) {
		pop(s);
		return ret;
	}
	in->counts->entries++;
	return 0;
}

static int feed_exit(struct feed *in)
{
	struct kx_callstack *s = in->s;
	struct kx_event of_span = *in->ev;
	uint32_t found;
	int ret;

	if (in->ev->is_marker)
		of_span.sp = 0;
	found = find_frame(s, s->depth, &of_span);
	if (!found) {
		if (in->ev->tsc >= s->lost_from)
			in->counts->orphans_of_loss++;
		else
			in->counts->orphans++;
		return 0;
	}
	ret = repair_above(in, found);
	if (ret < 0)
		return ret;
	ret = in->sink->exit(in->sink->ctx, in->ev, false);
	if (ret < 0)
		return ret;
	in->counts->exits++;
	pop(s);
	return 0;
}

/* The BPF side found that the call has ended; the entry that proves it may be filtered. */
static int feed_unwind(struct feed *in)
{
	uint32_t found = find_frame(in->s, in->s->depth, in->ev);

	return found ? repair_above(in, found - 1) : 0;
}

/* An event with nothing beside its call: no payload, no flags. */
static inline bool is_plain(const struct kx_event *ev)
{
	return KX_EVENT_IS_CALL(ev->kind) && !(ev->words | ev->has_values | ev->has_caller | ev->held | ev->is_marker | ev->is_instant);
}

/* An entry that continues the top frame's run, or begins the first: repair_dead finds nothing. */
static inline bool enters_simply(const struct kx_callstack *s, const struct kx_event *ev)
{
	const struct frame *top;

	if (s->depth == s->capacity)
		return false;
	if (!s->depth)
		return true;
	top = &s->frames[s->depth - 1];
	return ev->sp && top->sp > ev->sp && top->sp - ev->sp <= NEAR && s->nruns < MAX_RUNS;
}

/* An exit of the top frame, which find_frame finds first. */
static inline bool leaves_simply(const struct kx_callstack *s, const struct kx_event *ev)
{
	const struct frame *top = &s->frames[s->depth - 1];

	return s->depth && ev->sp && top->sp == ev->sp && top->func == ev->func;
}

uint32_t kx_callstack_simple_calls(struct kx_callstack *s, const struct kx_event *events, uint32_t n, uint64_t until,
				   struct kx_fdr_call *out)
{
	uint32_t i = 0;

	for (; i < n; i++) {
		const struct kx_event *ev = &events[i];

		if (!is_plain(ev) || ev->tsc >= until || ev->tsc < s->newest)
			break;
		out[i] = (struct kx_fdr_call){ ev->tsc, ev->func, ev->cpu, KX_FDR_ENTRY };
		if (ev->kind == KX_EVENT_ENTRY) {
			if (!enters_simply(s, ev) || push(s, ev))
				break;
		} else {
			if (!leaves_simply(s, ev))
				break;
			out[i].action = ev->kind == KX_EVENT_EXIT ? KX_FDR_EXIT : KX_FDR_TAIL_EXIT;
			pop(s);
		}
		s->newest = ev->tsc;
	}
	return i;
}

int kx_callstack_feed(struct kx_callstack *s, const struct kx_event *ev,
		      const struct kx_callstack_sink *sink, struct kx_callstack_counts *counts)
{
	struct feed in = { s, ev, sink, counts };
	struct kx_event raised;
	int ret;

	if (ev->tsc < s->newest) {
		raised = *ev;
		raised.tsc = s->newest;
		in.ev = &raised;
	} else {
		s->newest = ev->tsc;
	}
	switch (ev->kind) {
	case KX_EVENT_ENTRY:
		return feed_entry(&in);
	case KX_EVENT_EXIT:
	case KX_EVENT_TAIL_EXIT:
		return feed_exit(&in);
	case KX_EVENT_UNWIND:
		return feed_unwind(&in);
	case KX_EVENT_THREAD_EXIT:
		ret = repair_above(&in, 0);
		if (ret < 0)
			return ret;
		break;
	case KX_EVENT_LOSS:
		kx_callstack_lost_from(s, ev->tsc);
		break;
	}
	return sink->other(sink->ctx, in.ev);
}
