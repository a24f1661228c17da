// SPDX-License-Identifier: BSD-2-Clause
/*
 * Cursors: decode the records of the segments that fdr_index.c has checked. Time is computed as in
 * llvm-xray's FDRTraceExpander: NewCPUId and TSCWrap set the clock, function records and (since
 * version 5) events add to it.
 */
#include <errno.h>
#include <stdlib.h>

#include "trace/fdr_naive.h"
#include "trace/fdr_segments.h"

#define FIRST_BYTE(kind) ((kind) << 1 | 1)

struct kx_fdr_cursor {
	struct kx_fdr_file *f;
	const uint8_t *pos, *end; /* what is left of the open segment; basic mode: NULL */
	uint64_t tsc;
	uint32_t next; /* segment to open after this one */
	uint32_t thread;
	int32_t pid, tid;
	uint16_t cpu;
	bool one_thread;
	bool in_preamble; /* the record of the open buffer is still to be returned */
	uint64_t buffer;  /* its offset */
	uint64_t wall_sec;
	uint32_t wall_usec;
	uint64_t naive_pos; /* basic mode: offset of the next record */
	bool has_thread;    /* basic mode: thread, pid and tid are those of the last record */
};

/* By action, 0 to 3. */
static const uint8_t function_kinds[4] = {
	KX_RECORD_ENTRY,
	KX_RECORD_EXIT,
	KX_RECORD_TAIL_EXIT,
	KX_RECORD_ENTRY,
};

static int new_cursor(struct kx_fdr_file *f, struct kx_fdr_cursor **out)
{
	struct kx_fdr_cursor *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->f = f;
	c->naive_pos = KX_FDR_HEADER_SIZE;
	*out = c;
	return 0;
}

int kx_fdr_thread_cursor(struct kx_fdr_file *f, size_t thread, struct kx_fdr_cursor **out)
{
	int r = new_cursor(f, out);

	if (r)
		return r;
	(*out)->one_thread = true;
	(*out)->next = f->threads[thread].first;
	(*out)->thread = (uint32_t)thread;
	(*out)->pid = f->threads[thread].pid;
	(*out)->tid = f->threads[thread].tid;
	return 0;
}

int kx_fdr_file_cursor(struct kx_fdr_file *f, struct kx_fdr_cursor **out)
{
	int r = new_cursor(f, out);

	if (!r && !f->nsegments)
		(*out)->next = KX_FDR_NO_SEGMENT;
	return r;
}

void kx_fdr_cursor_free(struct kx_fdr_cursor *c)
{
	free(c);
}

/* 0 at the end of a good file, else the damage that the index has found there. */
static int at_end(const struct kx_fdr_cursor *c, struct kx_err *err)
{
	if (c->one_thread || !c->f->info.damaged)
		return 0;
	if (err)
		*err = c->f->damage;
	return -EBADMSG;
}

static int next_segment(struct kx_fdr_cursor *c, struct kx_err *err)
{
	struct kx_fdr_file *f = c->f;
	const struct kx_fdr_segment *s;

	if (c->next == KX_FDR_NO_SEGMENT)
		return at_end(c, err);
	s = &f->segments[c->next];
	c->pos = f->data + s->begin;
	c->end = f->data + s->end;
	if (!c->one_thread) {
		c->thread = s->thread;
		c->pid = f->threads[s->thread].pid;
		c->tid = f->threads[s->thread].tid;
	}
	if (c->one_thread)
		c->next = s->next;
	else if (++c->next == f->nsegments)
		c->next = KX_FDR_NO_SEGMENT;
	kx_fdr_touch(f, s->begin, s->end);
	return 1;
}

/* The index has checked every record, so an invalid one was changed since then. */
static int changed(const struct kx_fdr_cursor *c, struct kx_err *err)
{
	return kx_err_set(err, -EBADMSG,
			  "%s: the record at offset %llu was changed while the "
			  "file was read",
			  c->f->name, (unsigned long long)(c->pos - c->f->data));
}

/* Whether a CallArgument comes next, possibly after a BufferExtents in the same buffer. */
static bool argument_follows(const struct kx_fdr_cursor *c, const uint8_t *pos)
{
	const struct kx_fdr_segment *s;

	if (pos < c->end)
		return *pos == FIRST_BYTE(KX_FDR_CALL_ARGUMENT);
	if (c->next == KX_FDR_NO_SEGMENT)
		return false;
	s = &c->f->segments[c->next];
	return s->continued && c->f->data[s->begin] == FIRST_BYTE(KX_FDR_CALL_ARGUMENT);
}

/*
 * Times must not wrap, as they could in a damaged file: calls would end before they began. The interval before
 * a custom event is signed.
 */
static uint64_t later(uint64_t tsc, int64_t ticks)
{
	if (ticks < 0)
		return tsc < (uint64_t)-ticks ? 0 : tsc + (uint64_t)ticks;
	return tsc > UINT64_MAX - (uint64_t)ticks ? UINT64_MAX : tsc + (uint64_t)ticks;
}

/* Whether @n intervals could wrap the time: such records are read one by one. */
static bool may_wrap(const struct kx_fdr_cursor *c, size_t n)
{
	return (c->tsc >> 32) + n >= UINT32_MAX;
}

static void fill_common(const struct kx_fdr_cursor *c, struct kx_fdr_record *rec)
{
	rec->nargs = 0;
	rec->cpu = c->cpu;
	rec->func = 0;
	rec->thread = c->thread;
	rec->tid = c->tid;
	rec->pid = c->pid;
	rec->tsc = c->tsc;
	rec->offset = (uint64_t)(c->pos - c->f->data);
	rec->size = 0;
	rec->data = NULL;
}

static int next_function(struct kx_fdr_cursor *c, struct kx_fdr_record *rec, struct kx_err *err)
{
	uint64_t word;

	if (c->end - c->pos < KX_FDR_FUNCTION_SIZE)
		return changed(c, err);
	word = kx_get64(c->pos);
	c->tsc = later(c->tsc, (int64_t)(word >> 32));
	fill_common(c, rec);
	rec->func = (uint32_t)word >> 4;
	rec->kind = function_kinds[word >> 1 & 3];
	c->pos += KX_FDR_FUNCTION_SIZE;
	while (argument_follows(c, c->pos)) {
		if (c->pos == c->end)
			next_segment(c, NULL);
		if (c->end - c->pos < KX_FDR_METADATA_SIZE)
			return changed(c, err);
		/* as in llvm-xray, any function record with arguments is an entry */
		rec->kind = KX_RECORD_ENTRY;
		if (rec->nargs < KX_FDR_READ_ARGS)
			rec->args[rec->nargs++] = kx_get64(c->pos + 1);
		c->pos += KX_FDR_METADATA_SIZE;
	}
	return 1;
}

static int next_event(struct kx_fdr_cursor *c, unsigned kind, struct kx_fdr_record *rec,
		      struct kx_err *err)
{
	const uint8_t *p = c->pos;
	int32_t size = (int32_t)kx_get32(p + 1);
	unsigned version = c->f->info.version;

	if (size <= 0 || c->end - p - KX_FDR_METADATA_SIZE < size)
		return changed(c, err);
	fill_common(c, rec);
	if (kind == KX_FDR_TYPED_EVENT || version >= 5) {
		c->tsc = later(c->tsc, (int32_t)kx_get32(p + 5));
		rec->tsc = c->tsc;
	} else {
		rec->tsc = kx_get64(p + 5); /* leaves the clock as it is */
		/* llvm-xray reads reserved bytes as a CPU in older versions, too */
		if (version == 4)
			rec->cpu = kx_get16(p + 13);
	}
	rec->kind = kind == KX_FDR_TYPED_EVENT ? KX_RECORD_TYPED : KX_RECORD_CUSTOM;
	rec->event_type = kind == KX_FDR_TYPED_EVENT ? kx_get16(p + 9) : 0;
	rec->size = (uint32_t)size;
	rec->data = p + KX_FDR_METADATA_SIZE;
	c->pos += KX_FDR_METADATA_SIZE + size;
	return 1;
}

static int next_metadata(struct kx_fdr_cursor *c, struct kx_fdr_record *rec, struct kx_err *err)
{
	const uint8_t *p = c->pos;
	unsigned kind = *p >> 1;

	if (c->end - p < KX_FDR_METADATA_SIZE)
		return changed(c, err);
	switch (kind) {
	case KX_FDR_NEW_BUFFER:
		c->in_preamble = true;
		c->buffer = (uint64_t)(p - c->f->data);
		break;
	case KX_FDR_WALL_TIME:
		c->wall_sec = kx_get64(p + 1);
		c->wall_usec = kx_get32(p + 9);
		break;
	case KX_FDR_NEW_CPU_ID:
		if (c->in_preamble) {
			c->in_preamble = false;
			c->tsc = 0;
			c->cpu = 0;
			fill_common(c, rec);
			rec->kind = KX_RECORD_BUFFER;
			rec->offset = c->buffer;
			rec->wall_sec = c->wall_sec;
			rec->wall_usec = c->wall_usec;
			return 1; /* the NewCPUId itself comes next */
		}
		c->cpu = kx_get16(p + 1);
		c->tsc = kx_get64(p + 3);
		fill_common(c, rec);
		rec->kind = KX_RECORD_CPU;
		c->pos += KX_FDR_METADATA_SIZE;
		return 1;
	case KX_FDR_TSC_WRAP:
		c->tsc = kx_get64(p + 1);
		fill_common(c, rec);
		rec->kind = KX_RECORD_WRAP;
		c->pos += KX_FDR_METADATA_SIZE;
		return 1;
	case KX_FDR_END_OF_BUFFER:
		fill_common(c, rec);
		rec->kind = KX_RECORD_END;
		c->pos += KX_FDR_METADATA_SIZE;
		return 1;
	case KX_FDR_CUSTOM_EVENT:
	case KX_FDR_TYPED_EVENT:
		return next_event(c, kind, rec, err);
	case KX_FDR_PID: /* already in the index */
		break;
	default:
		return changed(c, err);
	}
	c->pos += KX_FDR_METADATA_SIZE;
	return 0;
}

static int next_naive(struct kx_fdr_cursor *c, struct kx_fdr_record *rec, struct kx_err *err)
{
	struct kx_fdr_file *f = c->f;
	const uint8_t *p;
	int64_t thread;

	for (;; c->naive_pos += KX_FDR_NAIVE_SIZE) {
		if (f->naive_end - c->naive_pos < KX_FDR_NAIVE_SIZE || c->naive_pos >= f->naive_end)
			return at_end(c, err);
		p = f->data + c->naive_pos;
		if (!(c->naive_pos % (1u << 20)))
			kx_fdr_touch(f, c->naive_pos, c->naive_pos + (1u << 20));
		if (kx_get16(p))
			continue;
		rec->tid = (int32_t)kx_get32(p + 16);
		rec->pid = f->info.version >= 3 ? (int32_t)kx_get32(p + 20) : 0;
		if (!c->one_thread || (rec->tid == c->tid && rec->pid == c->pid))
			break;
	}
	if (c->one_thread || (rec->tid == c->tid && rec->pid == c->pid && c->has_thread)) {
		thread = c->thread;
	} else {
		thread = kx_fdr_intern_thread(f, rec->pid, rec->tid);
		if (thread < 0)
			return kx_err_set(err, -ENOMEM, "%s: out of memory for its threads",
					  f->name);
		c->thread = (uint32_t)thread;
		c->tid = rec->tid;
		c->pid = rec->pid;
		c->has_thread = true;
	}
	rec->kind = function_kinds[p[3] & 3];
	rec->nargs = 0;
	rec->cpu = p[2];
	rec->func = kx_get32(p + 4);
	rec->thread = (uint32_t)thread;
	rec->tsc = kx_get64(p + 8);
	rec->offset = c->naive_pos;
	rec->size = 0;
	rec->data = NULL;
	c->naive_pos += KX_FDR_NAIVE_SIZE;
	while (c->naive_pos < f->naive_end && kx_get16(f->data + c->naive_pos) == 1) {
		if (rec->nargs < KX_FDR_READ_ARGS)
			rec->args[rec->nargs++] = kx_get64(f->data + c->naive_pos + 16);
		c->naive_pos += KX_FDR_NAIVE_SIZE;
	}
	return 1;
}

int kx_fdr_next(struct kx_fdr_cursor *c, struct kx_fdr_record *rec, struct kx_err *err)
{
	int r;

	if (c->f->info.type == KX_FDR_TYPE_NAIVE)
		return next_naive(c, rec, err);
	for (;;) {
		if (c->pos == c->end) {
			r = next_segment(c, err);
			if (r <= 0)
				return r;
		}
		r = *c->pos & 1 ? next_metadata(c, rec, err) : next_function(c, rec, err);
		if (r)
			return r;
	}
}

size_t kx_fdr_next_calls(struct kx_fdr_cursor *c, struct kx_call_record *out, size_t max,
			 uint32_t *thread)
{
	const uint8_t *p = c->pos;
	size_t room = (size_t)(c->end - p) / KX_FDR_FUNCTION_SIZE, n = 0;
	uint64_t tsc = c->tsc, word;

	if (max > room)
		max = room;
	if (may_wrap(c, max))
		return 0;
	for (; n < max; n++, p += KX_FDR_FUNCTION_SIZE) {
		word = kx_get64(p);
		if (word & 9) /* metadata, or (not in a file that was checked) a bad action */
			break;
		tsc += word >> 32;
		out[n].tsc = tsc;
		out[n].func = (uint32_t)word >> 4;
		out[n].kind = function_kinds[word >> 1 & 3];
	}
	if (n && argument_follows(c, p)) {
		/* the last one has arguments: kx_fdr_next collects them */
		n--;
		p -= KX_FDR_FUNCTION_SIZE;
		tsc -= kx_get64(p) >> 32;
	}
	c->pos = p;
	c->tsc = tsc;
	*thread = c->thread;
	return n;
}

size_t kx_fdr_skip_calls(struct kx_fdr_cursor *c, uint64_t *first, uint64_t *last, uint32_t *thread)
{
	const uint8_t *begin = c->pos, *p = begin;
	uint64_t tsc = c->tsc, delta = 0;

	if (c->end - p < KX_FDR_FUNCTION_SIZE || *p & 9 ||
	    may_wrap(c, (size_t)(c->end - p) / KX_FDR_FUNCTION_SIZE))
		return 0;
	*first = tsc + (kx_get64(p) >> 32);
	while (c->end - p >= 4 * KX_FDR_FUNCTION_SIZE) {
		uint64_t a = kx_get64(p), b = kx_get64(p + 8);
		uint64_t d = kx_get64(p + 16), e = kx_get64(p + 24);

		if ((a | b | d | e) & 9)
			break;
		tsc += (a >> 32) + (b >> 32) + (d >> 32) + (delta = e >> 32);
		p += 4 * KX_FDR_FUNCTION_SIZE;
	}
	while (c->end - p >= KX_FDR_FUNCTION_SIZE && !(*p & 9)) {
		delta = kx_get64(p) >> 32;
		tsc += delta;
		p += KX_FDR_FUNCTION_SIZE;
	}
	if (p < c->end && *p == FIRST_BYTE(KX_FDR_CALL_ARGUMENT)) {
		p -= KX_FDR_FUNCTION_SIZE;
		tsc -= delta;
	}
	c->pos = p;
	c->tsc = *last = tsc;
	*thread = c->thread;
	return (size_t)(p - begin) / KX_FDR_FUNCTION_SIZE;
}
