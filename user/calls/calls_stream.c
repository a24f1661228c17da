// SPDX-License-Identifier: BSD-2-Clause
/*
 * One thread's records become what a visitor is told, in three steps: the stack of open calls
 * balances them, the filter chooses, and a queue holds what is chosen until it is told.
 *
 * With --min-duration a call is undecided until the thread's time shows that it is long enough,
 * or its exit that it is not. An undecided call at the head of the queue holds up what follows.
 * That is little: calls inside it that have ended were shorter still and are gone again, so only
 * open calls and the rare records of other kinds wait.
 */
#include <string.h>

#include "calls/calls_stream.h"
#include "trace/notes.h"

struct kx_stream *kx_stream_new(struct kx_calls *c, size_t batch, bool alone)
{
	const struct kx_ready_filter *f = &c->filter;
	struct kx_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->c = c;
	s->direct = alone && !f->by_name && !f->by_time && !f->min && f->max_depth == UINT32_MAX;
	s->batch_size = batch;
	s->batch = calloc(batch, sizeof(*s->batch));
	if (s->batch)
		return s;
	free(s);
	return NULL;
}

void kx_stream_free(struct kx_stream *s)
{
	if (!s)
		return;
	if (s->t) {
		s->t->stack = NULL;
		s->t->depth = 0;
	}
	kx_fdr_cursor_free(s->cursor);
	free(s->batch);
	free(s->frames);
	free(s->outer);
	free(s->told);
	free(s->extras);
	free(s->calls);
	free(s);
}

int kx_stream_open(struct kx_stream *s, size_t thread)
{
	kx_fdr_cursor_free(s->cursor);
	s->cursor = NULL;
	if (s->t)
		s->t->stack = NULL;
	s->t = &s->c->threads[thread];
	s->t->depth = 0;
	s->t->stack = s->calls;
	s->depth = s->candidates = s->decided = 0;
	s->told_at = s->told_end = s->extras_at = s->extras_end = 0;
	s->told_base = 0;
	s->newest = 0;
	s->repaired = 0;
	s->has_cpu = s->has_result = s->over = s->introduced = s->refused = false;
	s->begun = !s->c->filter.from;
	return kx_fdr_thread_cursor(s->c->f, thread, &s->cursor);
}

/* Arrays that grow */

int kx_stream_grow(void *array, uint32_t *room, size_t size)
{
	uint32_t wanted = *room ? *room * 2 : 8;
	void *bigger, *old;

	memcpy(&old, array, sizeof(old));
	bigger = wanted > *room ? reallocarray(old, wanted, size) : NULL;
	if (!bigger)
		return -ENOMEM;
	memcpy(array, &bigger, sizeof(bigger));
	*room = wanted;
	return 0;
}

/* Told ones make room first. */
int kx_stream_told_room(struct kx_stream *s)
{
	if (s->told_at < s->told_room / 2 || !s->told_at)
		return kx_stream_grow(&s->told, &s->told_room, sizeof(*s->told));
	memmove(s->told, s->told + s->told_at, (s->told_end - s->told_at) * sizeof(*s->told));
	s->told_base += s->told_at;
	s->told_end -= s->told_at;
	s->told_at = 0;
	return 0;
}

/* Something beside @e, which was queued last. */
static struct extra *queue_extra(struct kx_stream *s, struct told *e)
{
	struct extra *x;

	if (s->extras_end == s->extras_room) {
		if (s->extras_at && s->extras_at >= s->extras_room / 2) {
			s->extras_end -= s->extras_at;
			memmove(s->extras, s->extras + s->extras_at,
				s->extras_end * sizeof(*s->extras));
			s->extras_at = 0;
		} else if (kx_stream_grow(&s->extras, &s->extras_room, sizeof(*s->extras))) {
			return NULL;
		}
	}
	e->extra = 1;
	x = &s->extras[s->extras_end++];
	memset(x, 0, sizeof(*x));
	return x;
}

static bool outer_has(const struct kx_stream *s, uint32_t func)
{
	uint32_t mask = (1u << s->outer_bits) - 1;

	if (!s->depth)
		return false;
	for (uint32_t at = outer_place(s, func); s->outer[at]; at = (at + 1) & mask)
		if (s->frames[s->outer[at] - 1].func == func)
			return true;
	return false;
}

static int outer_grow(struct kx_stream *s)
{
	/* Of direct streams there is one: room enough for few collisions. */
	unsigned bits = s->outer ? s->outer_bits + 1 : s->direct ? 10 : 5;
	uint32_t *outer = bits > 31 ? NULL : calloc(1ul << bits, sizeof(*outer));

	if (!outer)
		return -ENOMEM;
	free(s->outer);
	s->outer = outer;
	s->outer_bits = bits;
	s->outer_used = 0;
	for (uint32_t i = 0; i < s->depth; i++)
		if (s->frames[i].outermost)
			outer_add(s, i);
	return 0;
}

/* Calls */

/* Tells @frame, its call begins at @tsc for the visitor. */
static int queue_enter(struct kx_stream *s, struct frame *frame, uint64_t tsc,
		       const struct kx_fdr_record *rec)
{
	const struct kx_ready_filter *f = &s->c->filter;
	struct told *e;
	struct extra *x;

	if (s->candidates >= f->max_depth || !kx_filter_wants(s->c, frame->func)) {
		frame->state = FRAME_DROPPED;
		return 0;
	}
	e = queue(s, TOLD_ENTER, tsc);
	if (!e)
		return -ENOMEM;
	e->func = frame->func;
	e->cpu = frame->cpu;
	e->outermost = frame->outermost;
	if (rec && rec->nargs) {
		x = queue_extra(s, e);
		if (!x)
			return -ENOMEM;
		x->nargs = rec->nargs;
		if (s->c->has_callers) {
			x->has_caller = true;
			x->caller = rec->args[--x->nargs];
		}
		memcpy(x->words, rec->args, x->nargs * sizeof(*rec->args));
	}
	s->candidates++;
	frame->state = FRAME_TOLD;
	if (f->min && s->newest - frame->enter < f->min) {
		frame->state = FRAME_UNDECIDED;
		frame->told = s->told_base + s->told_end - 1;
		e->undecided = 1;
	}
	return 0;
}

/* Calls that are long enough now are. */
static void decide(struct kx_stream *s, uint64_t now)
{
	for (; s->decided < s->depth; s->decided++) {
		struct frame *f = &s->frames[s->decided];

		if (f->state != FRAME_UNDECIDED)
			continue;
		if (now - f->enter < s->c->filter.min)
			return;
		f->state = FRAME_TOLD;
		s->told[f->told - s->told_base].undecided = 0;
	}
}

/* The innermost call was too short. */
static void take_back(struct kx_stream *s, const struct frame *f)
{
	uint32_t at = (uint32_t)(f->told - s->told_base);

	s->told[at].kind = TOLD_NOTHING;
	s->told[at].undecided = 0;
	while (s->told_end > s->told_at && s->told[s->told_end - 1].kind == TOLD_NOTHING)
		s->extras_end -= s->told[--s->told_end].extra;
}

int kx_stream_frame_room(struct kx_stream *s)
{
	int r = s->depth == s->room ? kx_stream_grow(&s->frames, &s->room, sizeof(*s->frames)) : 0;

	return r || (s->outer && !outer_is_full(s)) ? r : outer_grow(s);
}

static inline int enter(struct kx_stream *s, uint64_t tsc, uint32_t func,
			const struct kx_fdr_record *rec)
{
	struct frame *f;

	if (s->depth == s->room || outer_is_full(s)) {
		int r = kx_stream_frame_room(s);

		if (r)
			return r;
	}
	f = &s->frames[s->depth];
	f->enter = tsc;
	f->func = func;
	f->cpu = s->cpu;
	f->outermost = outer_add(s, s->depth);
	f->state = FRAME_BEFORE;
	s->depth++;
	return s->begun ? queue_enter(s, f, tsc, rec) : 0;
}

/* @result of the call, NULL if the trace does not say. */
static inline int close_innermost(struct kx_stream *s, uint64_t tsc, enum kx_leave how,
				  const int64_t *result)
{
	const struct frame *f = &s->frames[--s->depth];
	struct told *e;
	struct extra *x;

	if (f->outermost)
		outer_remove(s, s->depth);
	if (s->decided > s->depth)
		s->decided = s->depth;
	if (f->state >= FRAME_DROPPED)
		return 0;
	s->candidates--;
	if (f->state == FRAME_UNDECIDED) {
		take_back(s, f);
		return 0;
	}
	s->c->totals.repaired += how == KX_LEAVE_REPAIRED;
	s->c->totals.open += how == KX_LEAVE_OPEN;
	e = queue(s, TOLD_LEAVE, tsc);
	if (!e)
		return -ENOMEM;
	e->how = (uint8_t)how & 7;
	if (!result)
		return 0;
	x = queue_extra(s, e);
	if (!x)
		return -ENOMEM;
	x->words[0] = (uint64_t)*result;
	return 0;
}

int kx_stream_leave(struct kx_stream *s, uint64_t tsc, uint32_t func, bool tail)
{
	enum kx_leave how = tail ? KX_LEAVE_TAIL : KX_LEAVE_EXIT;
	const int64_t value = s->result, *result = s->has_result ? &value : NULL;
	int r = 0;

	s->has_result = false;

	if (s->repaired) {
		s->repaired--;
		how = KX_LEAVE_REPAIRED;
	}
	if (s->depth && s->frames[s->depth - 1].func == func)
		return close_innermost(s, tsc, how, result);
	if (!outer_has(s, func)) {
		s->c->totals.orphans += s->begun;
		return 0;
	}
	while (!r && s->frames[s->depth - 1].func != func)
		r = close_innermost(s, tsc, KX_LEAVE_REPAIRED, NULL);
	return r ? r : close_innermost(s, tsc, how, result);
}

/* Time */

/* The range of time begins: calls that are open are told from there on. */
static int begin(struct kx_stream *s)
{
	int r = 0;

	s->begun = true;
	s->decided = 0;
	for (uint32_t i = 0; i < s->depth && !r; i++)
		r = queue_enter(s, &s->frames[i], s->c->filter.from, NULL);
	return r;
}

/* The thread's records are over, or the range of time is. */
static int finish(struct kx_stream *s)
{
	uint64_t end = s->c->filter.to;
	int r = 0;

	s->over = true;
	if (!s->begun && s->c->filter.from < end) {
		if (s->newest < s->c->filter.from)
			s->newest = s->c->filter.from;
		r = begin(s);
	}
	decide(s, end);
	if (!s->depth)
		end = s->newest;
	while (s->depth && !r)
		r = close_innermost(s, end, KX_LEAVE_OPEN, NULL);
	return r || queue(s, TOLD_END, end) ? r : -ENOMEM;
}

/*
 * Time goes on to *@tsc, which is raised to the newest where the trace's clock went back. Returns
 * 0 to go on, 1 if the range of time is over. A call that ends where the range begins, or begins
 * where it ends, is out.
 */
static inline int advance(struct kx_stream *s, uint64_t *tsc, bool entry)
{
	const struct kx_ready_filter *f = &s->c->filter;
	int r = 0;

	if (*tsc < s->newest)
		*tsc = s->newest;
	if (f->by_time) {
		if (*tsc > f->to || (entry && *tsc == f->to && f->to < s->c->totals.last_tsc))
			return 1;
		if (!s->begun && *tsc > f->from) {
			s->newest = *tsc;
			r = begin(s);
		}
	}
	s->newest = *tsc;
	if (s->decided < s->depth)
		decide(s, *tsc);
	return r;
}

/* Records */

static int take_loss(struct kx_stream *s, uint64_t tsc, const json_t *note)
{
	struct told *e = queue(s, TOLD_LOSS, tsc);
	struct extra *x = e ? queue_extra(s, e) : NULL;

	if (!x)
		return -ENOMEM;
	x->words[0] = kx_note_number(note, "from");
	x->words[1] = kx_note_number(note, "to");
	x->words[2] = kx_note_number(note, "entries");
	x->words[3] = kx_note_number(note, "exits");
	return 0;
}

static int take_sample(struct kx_stream *s, uint64_t tsc, const json_t *note)
{
	const char *ip = json_string_value(json_object_get(note, "ip"));
	struct told *e = ip ? queue(s, TOLD_SAMPLE, tsc) : NULL;
	struct extra *x = e ? queue_extra(s, e) : NULL;

	if (x)
		x->words[0] = strtoull(ip, NULL, 16);
	return x || !ip ? 0 : -ENOMEM;
}

/*
 * A time off the CPU may reach over the end of the range: what of it lies inside is told before
 * the range ends.
 */
static int take_sched(struct kx_stream *s, const struct kx_fdr_record *rec, const uint8_t *body,
		      uint32_t size)
{
	const struct kx_ready_filter *f = &s->c->filter;
	bool over = f->by_time && rec->tsc > f->to;
	uint64_t end = over ? f->to : rec->tsc;
	struct kx_sched_interval i;
	struct extra *x;
	struct told *e;
	int r;

	if (!kx_sched_parse(body, size, rec->tsc, &i))
		return 0;
	r = advance(s, &end, false);
	if (r)
		return r;
	if (!s->begun || !kx_sched_cut(&i, f->from, end))
		return over;
	e = queue(s, TOLD_SCHED, end);
	x = e ? queue_extra(s, e) : NULL;
	if (!x)
		return -ENOMEM;
	x->words[0] = i.from;
	x->words[1] = i.wake;
	x->words[2] = i.to;
	x->words[3] = i.waker;
	x->words[4] = i.has_waker;
	x->words[5] = i.open;
	x->type = (uint16_t)i.state;
	return over;
}

static void take_result(struct kx_stream *s, const json_t *note)
{
	const json_t *value = json_object_get(note, "value");

	s->has_result = json_is_integer(value);
	s->result = json_integer_value(value);
}

/* A name from the trace's start in the middle of a thread is that of another one: see fdr.h. */
static int take_name(struct kx_stream *s, uint64_t tsc, const uint8_t *body, uint32_t size,
		     bool another)
{
	struct told *e = queue(s, TOLD_NAME, tsc);
	struct extra *x = e ? queue_extra(s, e) : NULL;

	if (!x)
		return -ENOMEM;
	x->data = body;
	x->size = size;
	x->words[0] = another;
	return 0;
}

static int take_note(struct kx_stream *s, uint64_t tsc, const struct kx_fdr_record *rec)
{
	uint32_t size;
	const uint8_t *body = kx_note_body(rec, "thread", &size);
	json_t *note;
	int r = 0;

	if (body)
		return take_name(s, tsc, body, size, rec->tsc < tsc);
	if ((note = kx_note_json(rec, "repaired")))
		s->repaired += kx_note_number(note, "exits");
	else if ((note = kx_note_json(rec, "result")))
		take_result(s, note);
	else if (s->begun && (note = kx_note_json(rec, "loss")))
		r = take_loss(s, tsc, note);
	else if (s->begun && (note = kx_note_json(rec, "sample")))
		r = take_sample(s, tsc, note);
	json_decref(note);
	return r;
}

static int take_event(struct kx_stream *s, uint64_t tsc, const struct kx_fdr_record *rec)
{
	struct told *e;
	struct extra *x;

	if (kx_note_is_ours(rec))
		return take_note(s, tsc, rec);
	if (!s->begun)
		return 0;
	e = queue(s, TOLD_EVENT, tsc);
	x = e ? queue_extra(s, e) : NULL;
	if (!x)
		return -ENOMEM;
	x->data = rec->data;
	x->size = rec->size;
	x->type = rec->event_type;
	return 0;
}

static int take_cpu(struct kx_stream *s, uint64_t tsc, uint16_t cpu)
{
	struct told *e;

	if (s->has_cpu && s->cpu == cpu)
		return 0;
	s->cpu = cpu;
	s->has_cpu = true;
	e = queue(s, TOLD_CPU, tsc);
	if (!e)
		return -ENOMEM;
	e->cpu = cpu;
	return 0;
}

static int take_record(struct kx_stream *s, const struct kx_fdr_record *rec)
{
	uint64_t tsc = rec->tsc;
	const uint8_t *body;
	uint32_t size;
	int r;

	if (rec->kind == KX_RECORD_BUFFER)
		return 0;
	if (s->c->has_sched && rec->kind == KX_RECORD_CUSTOM &&
	    (body = kx_note_body(rec, "sched", &size)))
		return s->c->visitor->sched ? take_sched(s, rec, body, size) : 0;
	r = advance(s, &tsc, rec->kind == KX_RECORD_ENTRY);
	if (r)
		return r;
	switch (rec->kind) {
	case KX_RECORD_ENTRY:
		r = take_cpu(s, tsc, rec->cpu);
		return r ? r : enter(s, tsc, rec->func, rec);
	case KX_RECORD_EXIT:
	case KX_RECORD_TAIL_EXIT:
		r = take_cpu(s, tsc, rec->cpu);
		return r ? r : kx_stream_leave(s, tsc, rec->func, rec->kind == KX_RECORD_TAIL_EXIT);
	case KX_RECORD_CPU:
		return take_cpu(s, tsc, rec->cpu);
	case KX_RECORD_CUSTOM:
	case KX_RECORD_TYPED:
		return take_event(s, tsc, rec);
	default:
		return 0;
	}
}

static int take_calls(struct kx_stream *s, size_t n)
{
	int r = 0;

	for (const struct kx_call_record *c = s->batch; n && !r; c++, n--) {
		uint64_t tsc = c->tsc;

		r = advance(s, &tsc, c->kind == KX_RECORD_ENTRY);
		if (r)
			break;
		if (c->kind == KX_RECORD_ENTRY)
			r = enter(s, tsc, c->func, NULL);
		else
			r = kx_stream_leave(s, tsc, c->func, c->kind == KX_RECORD_TAIL_EXIT);
	}
	return r;
}

bool kx_stream_ready(const struct kx_stream *s)
{
	return s->told_at < s->told_end && !s->told[s->told_at].undecided;
}

uint64_t kx_stream_time(const struct kx_stream *s)
{
	return s->told[s->told_at].tsc;
}

int kx_stream_fill(struct kx_stream *s, struct kx_err *err)
{
	int r = 0;

	while (!kx_stream_ready(s)) {
		uint32_t thread;
		size_t n;

		if (s->over)
			return 0;
		n = kx_fdr_next_calls(s->cursor, s->batch, s->batch_size, &thread);
		if (n) {
			s->c->bytes_read += n * KX_FDR_FUNCTION_SIZE;
			r = s->direct ? kx_stream_emit_batch(s, n) : take_calls(s, n);
		} else {
			struct kx_fdr_record rec;

			r = kx_fdr_next(s->cursor, &rec, err);
			if (r < 0)
				return r;
			s->c->bytes_read += KX_FDR_METADATA_SIZE + rec.size;
			r = r ? take_record(s, &rec) : 1;
		}
		if (r == 1)
			r = finish(s);
		if (r < 0)
			return s->refused ? r : kx_err_set(err, r, "out of memory for the calls of "
							   "the trace");
	}
	return 1;
}

