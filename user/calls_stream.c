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
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "calls_impl.h"

enum told_kind { TOLD_NOTHING, TOLD_ENTER, TOLD_LEAVE, TOLD_CPU, TOLD_NAME, TOLD_LOSS, TOLD_EVENT,
		 TOLD_SAMPLE, TOLD_END };

enum frame_state {
	FRAME_TOLD,
	FRAME_UNDECIDED, /* so far shorter than --min-duration */
	FRAME_DROPPED,
	FRAME_BEFORE,    /* the range of time has not begun yet */
};

/* An open call. */
struct frame {
	uint64_t enter; /* ticks */
	uint64_t told;  /* FRAME_UNDECIDED: number of its entry in the queue */
	uint32_t func;
	uint16_t cpu;
	uint8_t state;
	bool outermost; /* of its function */
};

struct told {
	uint64_t tsc;
	uint32_t func;
	uint16_t cpu;
	uint8_t kind;
	uint8_t how : 3; /* enum kx_leave */
	uint8_t undecided : 1;
	uint8_t outermost : 1;
	uint8_t extra : 1; /* the next item of the other queue belongs to it */
};

struct extra {
	uint64_t caller;
	uint64_t words[KX_FDR_READ_ARGS];
	const uint8_t *data;
	uint32_t size;
	uint16_t type;
	uint8_t nargs;
	bool has_caller;
};

struct kx_stream {
	struct kx_calls *c;
	struct kx_call_thread *t;
	struct kx_fdr_cursor *cursor;
	struct kx_call_record *batch;
	size_t batch_size;
	struct frame *frames;
	uint32_t depth, room;
	uint32_t candidates; /* frames told or undecided */
	uint32_t decided;    /* no frame below this one is undecided */
	uint32_t *outer;     /* outermost frames by function: index + 1; open addressing */
	uint32_t outer_used;
	unsigned outer_bits;
	struct told *told;
	uint32_t told_at, told_end, told_room;
	uint64_t told_base;  /* number of told[0] */
	struct extra *extras;
	uint32_t extras_at, extras_end, extras_room;
	struct kx_call *calls; /* t->stack */
	uint32_t calls_room;
	uint64_t newest;     /* ticks */
	uint64_t repaired;   /* so many exits to come were added by the recorder */
	uint16_t cpu;
	bool has_cpu;
	bool begun;          /* the range of time has */
	bool over;           /* everything is in the queue */
	bool introduced;     /* the visitor knows the thread */
};

struct kx_stream *kx_stream_new(struct kx_calls *c, size_t batch)
{
	struct kx_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->c = c;
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
	s->has_cpu = s->over = s->introduced = false;
	s->begun = !s->c->filter.from;
	return kx_fdr_thread_cursor(s->c->f, thread, &s->cursor);
}

/* The set of functions on the stack */

static uint32_t outer_place(const struct kx_stream *s, uint32_t func)
{
	return func * 0x9e3779b1u >> (32 - s->outer_bits);
}

/* Adds the function of frame @index; whether it was not there before. Room must be there. */
static inline bool outer_add(struct kx_stream *s, uint32_t index)
{
	uint32_t func = s->frames[index].func, mask = (1u << s->outer_bits) - 1;
	uint32_t at = outer_place(s, func);

	for (; s->outer[at]; at = (at + 1) & mask)
		if (s->frames[s->outer[at] - 1].func == func)
			return false;
	s->outer[at] = index + 1;
	s->outer_used++;
	return true;
}

/*
 * Functions leave the set in the reverse order of their coming, so nothing that was put
 * beyond a taken place is still there when that place becomes free.
 */
static inline void outer_remove(struct kx_stream *s, uint32_t index)
{
	uint32_t at = outer_place(s, s->frames[index].func), mask = (1u << s->outer_bits) - 1;

	while (s->outer[at] != index + 1)
		at = (at + 1) & mask;
	s->outer[at] = 0;
	s->outer_used--;
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

static bool outer_is_full(const struct kx_stream *s)
{
	return s->outer_used * 2ul >= 1ul << s->outer_bits;
}

static int outer_grow(struct kx_stream *s)
{
	unsigned bits = s->outer ? s->outer_bits + 1 : 4;
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

/* Arrays that grow */

static int grow(void *array, uint32_t *room, size_t size)
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

/* Room for one more entry in the queue; told ones make it first. */
static int told_room(struct kx_stream *s)
{
	if (s->told_at < s->told_room / 2 || !s->told_at)
		return grow(&s->told, &s->told_room, sizeof(*s->told));
	memmove(s->told, s->told + s->told_at, (s->told_end - s->told_at) * sizeof(*s->told));
	s->told_base += s->told_at;
	s->told_end -= s->told_at;
	s->told_at = 0;
	return 0;
}

static inline struct told *queue(struct kx_stream *s, enum told_kind kind, uint64_t tsc)
{
	struct told *e;

	if (s->told_at == s->told_end) {
		s->told_base += s->told_at;
		s->told_at = s->told_end = s->extras_at = s->extras_end = 0;
	}
	if (s->told_end == s->told_room && told_room(s))
		return NULL;
	e = &s->told[s->told_end++];
	*e = (struct told){ .tsc = tsc, .kind = (uint8_t)kind, .cpu = s->cpu };
	return e;
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
		} else if (grow(&s->extras, &s->extras_room, sizeof(*s->extras))) {
			return NULL;
		}
	}
	e->extra = 1;
	x = &s->extras[s->extras_end++];
	memset(x, 0, sizeof(*x));
	return x;
}

/* Calls */

/* Tells @frame, its call begins at @tsc for the visitor. */
static int queue_enter(struct kx_stream *s, struct frame *frame, uint64_t tsc,
		       const struct kx_record *rec)
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

static int enter_grow(struct kx_stream *s)
{
	int r = s->depth == s->room ? grow(&s->frames, &s->room, sizeof(*s->frames)) : 0;

	return r || (s->outer && !outer_is_full(s)) ? r : outer_grow(s);
}

static inline int enter(struct kx_stream *s, uint64_t tsc, uint32_t func,
			const struct kx_record *rec)
{
	struct frame *f;

	if (s->depth == s->room || outer_is_full(s)) {
		int r = enter_grow(s);

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

static inline int close_innermost(struct kx_stream *s, uint64_t tsc, enum kx_leave how)
{
	const struct frame *f = &s->frames[--s->depth];
	struct told *e;

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
	return 0;
}

static inline int leave(struct kx_stream *s, uint64_t tsc, uint32_t func, bool tail)
{
	enum kx_leave how = tail ? KX_LEAVE_TAIL : KX_LEAVE_EXIT;
	int r = 0;

	if (s->repaired) {
		s->repaired--;
		how = KX_LEAVE_REPAIRED;
	}
	if (s->depth && s->frames[s->depth - 1].func == func)
		return close_innermost(s, tsc, how);
	if (!outer_has(s, func)) {
		s->c->totals.orphans += s->begun;
		return 0;
	}
	while (!r && s->frames[s->depth - 1].func != func)
		r = close_innermost(s, tsc, KX_LEAVE_REPAIRED);
	return r ? r : close_innermost(s, tsc, how);
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
		r = close_innermost(s, end, KX_LEAVE_OPEN);
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

static uint64_t number(const json_t *object, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(object, key));

	return v > 0 ? (uint64_t)v : 0;
}

static int take_loss(struct kx_stream *s, uint64_t tsc, const uint8_t *body, uint32_t size)
{
	json_t *note = json_loadb((const char *)body, size, JSON_DISABLE_EOF_CHECK, NULL);
	struct told *e = note && s->begun ? queue(s, TOLD_LOSS, tsc) : NULL;
	struct extra *x = e ? queue_extra(s, e) : NULL;

	if (x) {
		x->words[0] = number(note, "from");
		x->words[1] = number(note, "to");
		x->words[2] = number(note, "entries");
		x->words[3] = number(note, "exits");
	}
	json_decref(note);
	return x || !note || !s->begun ? 0 : -ENOMEM;
}

static int take_sample(struct kx_stream *s, uint64_t tsc, const uint8_t *body, uint32_t size)
{
	json_t *note = json_loadb((const char *)body, size, JSON_DISABLE_EOF_CHECK, NULL);
	const char *ip = json_string_value(json_object_get(note, "ip"));
	struct told *e = ip && s->begun ? queue(s, TOLD_SAMPLE, tsc) : NULL;
	struct extra *x = e ? queue_extra(s, e) : NULL;

	if (x)
		x->words[0] = strtoull(ip, NULL, 16);
	json_decref(note);
	return x || !ip || !s->begun ? 0 : -ENOMEM;
}

static int take_event(struct kx_stream *s, uint64_t tsc, const struct kx_record *rec)
{
	const uint8_t *body;
	enum told_kind kind = TOLD_EVENT;
	struct told *e;
	struct extra *x;
	uint32_t size = rec->size;

	body = kx_note_body(rec, "repaired", &size);
	if (body) {
		json_t *note = json_loadb((const char *)body, size, JSON_DISABLE_EOF_CHECK, NULL);

		s->repaired += number(note, "exits");
		json_decref(note);
		return 0;
	}
	body = kx_note_body(rec, "loss", &size);
	if (body)
		return take_loss(s, tsc, body, size);
	body = kx_note_body(rec, "sample", &size);
	if (body)
		return take_sample(s, tsc, body, size);
	body = kx_note_body(rec, "thread", &size);
	if (body)
		kind = TOLD_NAME;
	else if (kx_note_is_ours(rec) || !s->begun)
		return 0;
	e = queue(s, kind, tsc);
	x = e ? queue_extra(s, e) : NULL;
	if (!x)
		return -ENOMEM;
	x->data = body ? body : rec->data;
	x->size = size;
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

static int take_record(struct kx_stream *s, const struct kx_record *rec)
{
	uint64_t tsc = rec->tsc;
	int r;

	if (rec->kind == KX_RECORD_BUFFER)
		return 0;
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
		return r ? r : leave(s, tsc, rec->func, rec->kind == KX_RECORD_TAIL_EXIT);
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
			r = leave(s, tsc, c->func, c->kind == KX_RECORD_TAIL_EXIT);
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
			r = take_calls(s, n);
		} else {
			struct kx_record rec;

			r = kx_fdr_next(s->cursor, &rec, err);
			if (r < 0)
				return r;
			s->c->bytes_read += KX_FDR_METADATA_SIZE + rec.size;
			r = r ? take_record(s, &rec) : 1;
		}
		if (r == 1)
			r = finish(s);
		if (r < 0)
			return kx_err_set(err, r, "out of memory for the calls of the trace");
	}
	return 1;
}

/* Telling */

static int introduce(struct kx_stream *s, uint64_t tsc)
{
	const struct kx_call_visitor *v = s->c->visitor;
	int r = 0;

	if (s->introduced)
		return 0;
	s->introduced = true;
	if (v->thread)
		r = v->thread(v->ctx, s->t, tsc);
	if (!r && v->cpu)
		r = v->cpu(v->ctx, s->t, tsc, s->t->cpu);
	return r;
}

static void fill_args(struct kx_call *call, const struct extra *x)
{
	call->nargs = x->nargs;
	call->has_caller = x->has_caller;
	call->caller = x->caller;
	memcpy(call->args, x->words, x->nargs * sizeof(*x->words));
}

static int tell_enter(struct kx_stream *s, const struct told *e, const struct extra *x)
{
	const struct kx_call_visitor *v = s->c->visitor;
	struct kx_call *call;

	if (s->t->depth == s->calls_room) {
		if (grow(&s->calls, &s->calls_room, sizeof(*s->calls)))
			return -ENOMEM;
		s->t->stack = s->calls;
	}
	call = &s->calls[s->t->depth++];
	call->func = e->func;
	call->cpu = e->cpu;
	call->enter = e->tsc;
	call->children = 0;
	call->number = s->c->totals.calls++;
	call->outermost = e->outermost;
	call->user = NULL;
	call->nargs = 0;
	call->has_caller = false;
	call->caller = 0;
	call->caller_module = 0;
	if (x)
		fill_args(call, x);
	return v->enter ? v->enter(v->ctx, s->t, call) : 0;
}

static int tell_leave(struct kx_stream *s, uint64_t tsc, enum kx_leave how)
{
	const struct kx_call_visitor *v = s->c->visitor;
	struct kx_call *call = &s->calls[s->t->depth - 1];
	int r = v->leave ? v->leave(v->ctx, s->t, call, tsc, how) : 0;

	s->t->depth--;
	if (s->t->depth)
		call[-1].children += tsc - call->enter;
	return r;
}

static int tell_loss(struct kx_stream *s, const struct extra *x)
{
	const struct kx_call_visitor *v = s->c->visitor;

	s->c->totals.lost += x->words[2] + x->words[3];
	return v->loss ? v->loss(v->ctx, s->t, x->words[0], x->words[1], x->words[2], x->words[3])
		       : 0;
}

static int tell_name(struct kx_stream *s, uint64_t tsc, const struct extra *x)
{
	const struct kx_call_visitor *v = s->c->visitor;
	bool changed;
	int r = kx_note_name(s->t, x->data, x->size, &changed);

	if (r || !changed || !s->introduced || !v->thread)
		return r;
	return v->thread(v->ctx, s->t, tsc);
}

static int tell_cpu(struct kx_stream *s, uint64_t tsc, uint16_t cpu)
{
	const struct kx_call_visitor *v = s->c->visitor;
	int r = s->introduced && v->cpu ? v->cpu(v->ctx, s->t, tsc, cpu) : 0;

	s->t->cpu = cpu;
	return r;
}

int kx_stream_tell(struct kx_stream *s)
{
	const struct told *e = &s->told[s->told_at++];
	const struct extra *x = e->extra ? &s->extras[s->extras_at++] : NULL;
	const struct kx_call_visitor *v = s->c->visitor;
	int r = 0;

	if (!s->introduced &&
	    (e->kind == TOLD_ENTER || e->kind == TOLD_LOSS || e->kind == TOLD_EVENT ||
	     (e->kind == TOLD_SAMPLE && v->sample)))
		r = introduce(s, e->tsc);
	if (r)
		return r;
	switch (e->kind) {
	case TOLD_ENTER:
		return tell_enter(s, e, x);
	case TOLD_LEAVE:
		return tell_leave(s, e->tsc, e->how);
	case TOLD_CPU:
		return tell_cpu(s, e->tsc, e->cpu);
	case TOLD_NAME:
		return tell_name(s, e->tsc, x);
	case TOLD_LOSS:
		return tell_loss(s, x);
	case TOLD_EVENT:
		return v->event ? v->event(v->ctx, s->t, e->tsc, x->type, x->data, x->size) : 0;
	case TOLD_SAMPLE:
		return v->sample ? v->sample(v->ctx, s->t, e->tsc, x->words[0]) : 0;
	case TOLD_END:
		return s->introduced && v->end ? v->end(v->ctx, s->t, e->tsc) : 0;
	default:
		return 0;
	}
}
